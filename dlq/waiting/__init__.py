"""Messages of a setting before they are handled: looking at them, and trying, killing, holding and releasing
them."""
