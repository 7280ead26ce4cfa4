"""What the machine, the container and the user's limits allow."""
