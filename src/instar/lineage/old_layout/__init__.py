"""From one row for each field of each dataset version, the old layout, to schemas kept once."""
