"""An op: its definition, a call of it, its arrays, and how a call is made smaller."""
