"""Messages of the sensor gateway."""
