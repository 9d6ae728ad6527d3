"""From JSON values to the bytes of CQL values, exactly: what does not fit is refused, and nothing is rounded
but the fractions of ``float`` and ``double``."""
