"""Pages of dead letters: queues and groups of them, what people do with them, replays."""
