"""How much a client may use, has used, and how long it must wait. Numbers and entities: no message, no socket."""
