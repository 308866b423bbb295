"""One file per command of ./ma. Each has `run(config, …) -> exit code`."""
