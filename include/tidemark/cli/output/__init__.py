"""What commands print for people: tables."""
