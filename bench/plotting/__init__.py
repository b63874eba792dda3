"""What bench/plot.py is made of."""
