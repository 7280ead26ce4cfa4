/* What the scan of TFRecord files shares between C and Python (layout.py mirrors it; a test compares the sizes). */
#pragma once

#include <stdint.h>

enum { FEATURES = 64, VALUES = 17, PLACES = 4, MASKS = 17, NAME = 120, EVENTS = 1024, BLOBS = 4096, CELLS = 16384 };

/* Why fl_walk stopped. */
enum { NEED_MORE = 0, AT_LIMIT, BAD_LENGTH, BAD_DATA, FULL };

/* What a feature holds: the fields of tf.train.Feature, and 0 for none. */
enum { KIND_NONE = 0, KIND_BYTES = 1, KIND_FLOAT = 2, KIND_INT64 = 3 };

/* What a record is. */
enum { RAW = 0, EXAMPLE, SEQUENCE_EXAMPLE, KINDS_OF_RECORD };

struct fl_place {
  uint64_t record, offset, size;
};

/* A value that was seen, how often, and where first. */
struct fl_value {
  uint64_t value, count;
  struct fl_place places[PLACES];
};

struct fl_feature {
  char name[NAME];
  uint32_t name_length;
  uint32_t in_list; /* of a SequenceExample */
  uint32_t lengths_used, sizes_used;
  struct fl_value lengths[VALUES]; /* kind << 56 | number of values; the last one stands for all others */
  struct fl_value sizes[VALUES];   /* bytes of the only string */
};

struct fl_event { /* numbers that are not finite */
  struct fl_place place;
  uint64_t feature, count;
};

struct fl_blob { /* what begins like an image */
  struct fl_place place;
  uint64_t start, size; /* in the buffer */
  uint32_t feature;
  uint32_t cells, cell_count; /* what else is in its record */
  uint32_t unused;
};

struct fl_cell {
  uint32_t feature, kind;
  uint64_t length, size; /* values; bytes of strings */
  int64_t first;         /* integer */
};

struct fl_state {
  /* in */
  uint64_t limit; /* records that begin here or later belong to the next piece */
  uint32_t parse, unused;
  /* in and out */
  uint64_t record; /* number of the next one */
  /* out */
  uint32_t stopped, feature_count;
  uint64_t sizes[65]; /* records by the bits of their size */
  struct fl_place largest;
  struct fl_value kinds[KINDS_OF_RECORD];
  uint64_t masks_used;
  struct fl_value masks[MASKS]; /* which features a record has */
  uint64_t more_features;       /* records that have some beyond FEATURES */
  uint32_t event_count, blob_count, cell_count, unused2;
  uint64_t events_untold;
  struct fl_feature features[FEATURES];
  struct fl_event events[EVENTS];
  struct fl_blob blobs[BLOBS];
  struct fl_cell cells[CELLS];
};
