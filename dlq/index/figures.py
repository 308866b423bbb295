"""What the process `feed` counts of itself, for Prometheus: it begins at 0 when the process starts."""

from exposition.declared import Tallies, counter

OF_FEED = (
    counter("ma_feed_letters_total", "Dead letters that the feed added to the index, since it started."),
    counter("ma_feed_steps_total", "Steps of the feed, since it started.", "result"),
)

tallies = Tallies(OF_FEED)
