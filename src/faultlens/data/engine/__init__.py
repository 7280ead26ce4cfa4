"""How files are cut into pieces, and who checks them."""
