/* Reads a tf.train.Example or SequenceExample as it lies in the buffer: names, kinds and lengths of its features,
   numbers that are not finite, and what begins like an image. Trusts no length. */
#pragma once

#include <stdbool.h>

#include "records.h"

/* Adds what was seen to the state, and returns what the record is. */
static int read_example(const uint8_t *buffer, uint64_t start, struct fl_place place, struct fl_state *state);

struct span {
  const uint8_t *at, *end;
};

struct found { /* in one feature */
  uint32_t kind;
  uint64_t length, size, not_finite;
  int64_t first;
};

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static inline bool varint(struct span *in, uint64_t *value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 70 && in->at < in->end; shift += 7) {
    uint8_t byte = *in->at++;
    if (shift < 64) result |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return true;
    }
  }
  return false;
}

/* The next field: its number and type; what has a length is in `inside`, and `in` stands behind it. */
static inline bool field(struct span *in, uint32_t *number, uint32_t *type, struct span *inside, uint64_t *value) {
  uint64_t tag;
  if (!varint(in, &tag) || tag >> 32 || tag >> 3 == 0) return false;
  *number = (uint32_t)(tag >> 3);
  *type = (uint32_t)(tag & 7);
  switch (*type) {
    case VARINT:
      return varint(in, value);
    case FIXED64:
    case FIXED32: {
      uint64_t size = *type == FIXED64 ? 8 : 4;
      if ((uint64_t)(in->end - in->at) < size) return false;
      inside->at = in->at;
      inside->end = in->at += size;
      return true;
    }
    case LENGTH:
      if (!varint(in, value) || *value > (uint64_t)(in->end - in->at)) return false;
      inside->at = in->at;
      inside->end = in->at += *value;
      return true;
  }
  return false; /* groups are not in use */
}

static uint64_t not_finite(const uint8_t *at, uint64_t count) {
  uint64_t bad = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, at + 4 * i, 4);
    bad += (bits & 0x7f800000u) == 0x7f800000u;
  }
  return bad;
}

static bool begins_like_an_image(struct span data) {
  uint64_t size = (uint64_t)(data.end - data.at);
  if (size < 16) return false;
  const uint8_t *at = data.at;
  uint32_t claimed;
  switch (at[0]) {
    case 0xff:
      return at[1] == 0xd8 && at[2] == 0xff;
    case 0x89:
      return !memcmp(at, "\x89PNG\r\n\x1a\n", 8);
    case 'G':
      return !memcmp(at, "GIF87a", 6) || !memcmp(at, "GIF89a", 6);
    case 'R':
      return !memcmp(at, "RIFF", 4) && !memcmp(at + 8, "WEBP", 4);
    case 'B': /* two letters are no proof: four reserved bytes must be zero, and the header's size one in use */
      if (at[1] != 'M' || size < 26 || load(at + 6) & 0xffffffffu) return false;
      memcpy(&claimed, at + 14, 4);
      return claimed == 12 || claimed == 40 || claimed == 52 || claimed == 56 || claimed == 108 || claimed == 124;
  }
  return false;
}

static void add_blob(struct span data, const uint8_t *buffer, struct fl_place place, uint32_t feature,
                     struct fl_state *state) {
  if (state->blob_count < BLOBS) {
    struct fl_blob *blob = &state->blobs[state->blob_count++];
    *blob = (struct fl_blob){place, (uint64_t)(data.at - buffer), (uint64_t)(data.end - data.at), feature, 0, 0, 0};
  }
}

/* One list of values: bytes_list, float_list or int64_list, which all hold them in field 1. */
static bool read_list(struct span in, uint32_t kind, struct found *found, const uint8_t *buffer, struct fl_place place,
                      uint32_t feature, struct fl_state *state) {
  while (in.at < in.end) {
    uint32_t number, type;
    uint64_t value = 0;
    struct span inside = {0, 0};
    if (!field(&in, &number, &type, &inside, &value)) return false;
    if (number != 1) continue;
    uint64_t size = (uint64_t)(inside.end - inside.at);
    if (kind == KIND_BYTES && type == LENGTH) {
      found->length++;
      found->size += size;
      if (begins_like_an_image(inside)) add_blob(inside, buffer, place, feature, state);
    } else if (kind == KIND_FLOAT && (type == LENGTH || type == FIXED32)) {
      if (size % 4) return false;
      found->length += size / 4;
      found->not_finite += not_finite(inside.at, size / 4);
    } else if (kind == KIND_INT64 && type == VARINT) {
      if (!found->length++) found->first = (int64_t)value;
    } else if (kind == KIND_INT64 && type == LENGTH) {
      if (!found->length && size) {
        struct span first = inside;
        if (!varint(&first, &value)) return false;
        found->first = (int64_t)value;
      }
      uint64_t run = 0;
      for (const uint8_t *at = inside.at; at < inside.end; at++) {
        if (++run > 10) return false; /* no number is that long */
        if (*at < 0x80) {
          found->length++;
          run = 0;
        }
      }
      if (run) return false;
    } else {
      return false;
    }
  }
  return true;
}

static bool read_feature(struct span in, struct found *found, const uint8_t *buffer, struct fl_place place,
                         uint32_t feature, struct fl_state *state) {
  while (in.at < in.end) {
    uint32_t number, type;
    uint64_t value;
    struct span inside = {0, 0};
    if (!field(&in, &number, &type, &inside, &value)) return false;
    if (number < KIND_BYTES || number > KIND_INT64) continue;
    if (type != LENGTH) return false;
    found->kind = number;
    if (!read_list(inside, number, found, buffer, place, feature, state)) return false;
  }
  return true;
}

static struct fl_value *value_in(struct fl_value *values, uint32_t *used, uint64_t value) {
  for (uint32_t i = 0; i < *used; i++)
    if (values[i].value == value) return &values[i];
  if (*used < VALUES) {
    values[*used].value = value;
    return &values[(*used)++];
  }
  return &values[VALUES - 1]; /* too many for a rule: what it counts does not matter any more */
}

static void add_value(struct fl_value *value, struct fl_place place) {
  if (value->count < PLACES) value->places[value->count] = place;
  value->count++;
}

/* Its number; FEATURES where there is no room for more. */
static uint32_t feature_named(struct span name, uint32_t in_list, struct fl_state *state, uint32_t guess) {
  uint64_t length = (uint64_t)(name.end - name.at);
  for (uint32_t i = 0; i < state->feature_count; i++) {
    uint32_t candidate = (guess + i) % state->feature_count; /* they often come in the same order */
    struct fl_feature *known = &state->features[candidate];
    uint64_t kept = length < NAME ? length : NAME;
    if (known->name_length == length && known->in_list == in_list && !memcmp(known->name, name.at, kept))
      return candidate;
  }
  if (state->feature_count == FEATURES) return FEATURES;
  struct fl_feature *fresh = &state->features[state->feature_count];
  memcpy(fresh->name, name.at, length < NAME ? length : NAME);
  fresh->name_length = (uint32_t)length;
  fresh->in_list = in_list;
  return state->feature_count++;
}

/* A map entry: the name in field 1, the feature or the list of features in field 2. */
static bool read_entry(struct span in, uint32_t in_list, const uint8_t *buffer, struct fl_place place, uint64_t *mask,
                       uint32_t *guess, struct fl_state *state) {
  struct span name = {in.at, in.at}, held = {in.at, in.at};
  while (in.at < in.end) {
    uint32_t number, type;
    uint64_t value;
    struct span inside = {0, 0};
    if (!field(&in, &number, &type, &inside, &value)) return false;
    if (number <= 2 && type != LENGTH) return false;
    if (number == 1) name = inside;
    if (number == 2) held = inside;
  }
  uint32_t index = feature_named(name, in_list, state, *guess);
  *guess = index + 1;
  struct found found = {0, 0, 0, 0, 0};
  uint64_t steps = 0;
  if (!in_list) {
    if (!read_feature(held, &found, buffer, place, index, state)) return false;
  } else {
    while (held.at < held.end) {
      uint32_t number, type;
      uint64_t value;
      struct span inside = {0, 0};
      if (!field(&held, &number, &type, &inside, &value)) return false;
      if (number != 1) continue;
      if (type != LENGTH || !read_feature(inside, &found, buffer, place, index, state)) return false;
      steps++;
    }
  }
  if (index == FEATURES) {
    state->more_features++;
    return true;
  }
  struct fl_feature *feature = &state->features[index];
  *mask |= 1ull << index;
  uint64_t length = in_list ? steps : found.length;
  add_value(value_in(feature->lengths, &feature->lengths_used, (uint64_t)found.kind << 56 | (length & 0xffffffffffffff)),
            place);
  if (found.kind == KIND_BYTES && found.length == 1 && !in_list)
    add_value(value_in(feature->sizes, &feature->sizes_used, found.size), place);
  if (found.not_finite) {
    if (state->event_count < EVENTS)
      state->events[state->event_count++] = (struct fl_event){place, index, found.not_finite};
    else
      state->events_untold++;
  }
  if (state->cell_count < CELLS)
    state->cells[state->cell_count++] = (struct fl_cell){index, found.kind, length, found.size, found.first};
  return true;
}

static bool read_map(struct span in, uint32_t in_list, const uint8_t *buffer, struct fl_place place, uint64_t *mask,
                     struct fl_state *state) {
  uint32_t guess = 0;
  while (in.at < in.end) {
    uint32_t number, type;
    uint64_t value;
    struct span inside = {0, 0};
    if (!field(&in, &number, &type, &inside, &value)) return false;
    if (number != 1) continue;
    if (type != LENGTH || !read_entry(inside, in_list, buffer, place, mask, &guess, state)) return false;
  }
  return true;
}

/* Whether the bytes have the shape of the message at all: nothing may be counted of what turns out to be no Example. */
static bool shaped(struct span in, int depth) {
  while (in.at < in.end) {
    uint32_t number, type;
    uint64_t value;
    struct span inside = {0, 0};
    if (!field(&in, &number, &type, &inside, &value)) return false;
    /* Example or SequenceExample, Features, entry, Feature: down to the lists, whose values read_list looks at. */
    bool deeper = depth == 0 ? number <= 2 : depth == 1 ? number == 1 : depth == 2 ? number == 2 : false;
    if (deeper && (type != LENGTH || (depth < 2 && !shaped(inside, depth + 1)))) return false;
    if (depth == 2 && number == 1 && type != LENGTH) return false;
  }
  return true;
}

static int read_example(const uint8_t *buffer, uint64_t start, struct fl_place place, struct fl_state *state) {
  struct span all = {buffer + start, buffer + start + place.size - 16}, in = all;
  if (!shaped(all, 0)) return RAW;
  uint32_t cells = state->cell_count, blobs = state->blob_count, events = state->event_count;
  uint64_t mask = 0;
  int kind = EXAMPLE;
  bool any = in.at == in.end;
  while (in.at < in.end) {
    uint32_t number, type;
    uint64_t value;
    struct span inside = {0, 0};
    if (!field(&in, &number, &type, &inside, &value)) break; /* `shaped` has seen that it is there */
    if (number > 2) continue;
    any = true;
    if (number == 2) kind = SEQUENCE_EXAMPLE;
    if (!read_map(inside, number == 2, buffer, place, &mask, state)) any = false;
    if (!any) break;
  }
  if (!any) {
    state->cell_count = cells, state->blob_count = blobs, state->event_count = events;
    return RAW;
  }
  for (uint32_t i = blobs; i < state->blob_count; i++) {
    state->blobs[i].cells = cells;
    state->blobs[i].cell_count = state->cell_count - cells;
  }
  if (state->blob_count == blobs) state->cell_count = cells; /* of use beside an image alone */
  uint32_t used = (uint32_t)state->masks_used;
  add_value(value_in(state->masks, &used, mask), place);
  state->masks_used = used;
  return kind;
}
