"""TFRecord files: their bytes, their records, and what is in them."""
