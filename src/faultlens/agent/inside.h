/* Python code of ours inside a Python program: see inside.c. */
#ifndef FAULTLENS_INSIDE_H
#define FAULTLENS_INSIDE_H

#include "agent.h"

/* A file was opened, perhaps by Python: is it a package that we have code for? */
void after_open(struct fl_area *area, const char *path);

/* The supervisor wants to know what the memory of this process is used for: Python looks as soon as it can. */
void look_soon(struct fl_area *area);

/* Called at places that every program comes by; nearly always this is all. */
static inline void look_if_asked(struct fl_area *area) {
    if (__builtin_expect(area && __atomic_load_n(&area->look_at, __ATOMIC_RELAXED) != 0, 0)) look_soon(area);
}

/* After fork: the child's marks must not go into the parent's page. */
void take_own_progress(struct fl_area *area);

#endif
