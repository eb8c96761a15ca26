"""The wire between agent and server: messages, codec and the session rules of both ends. No I/O."""
