"""`conversation`: the embedded Thinker in front of the embedded voice."""
