import sys


def parse_float(cell, row):
    try:
        return float(cell)
    except ValueError:
        print(f"bad cell in row {row!r}", file=sys.stderr)
        sys.exit(1)


def clean_row(row):
    return [parse_float(cell, row) for cell in row.split(",")]
