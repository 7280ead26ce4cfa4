/* Python code of ours inside a Python program: see inside.c. */
#ifndef FAULTLENS_INSIDE_H
#define FAULTLENS_INSIDE_H

#include "agent.h"

/* Python is about to open a file: is it a package that we have code for? */
void before_open(struct fl_area *area, const char *path);

/* After fork: the child's marks must not go into the parent's page. */
void take_own_progress(struct fl_area *area);

#endif
