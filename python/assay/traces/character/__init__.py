"""What a trace asks of storage: rates, places, reuse, bursts and waiting, worked out in one pass and bounded memory."""
