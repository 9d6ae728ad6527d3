"""Follow: rounds of bind, capture, audit, publish and deliver, again and again."""
