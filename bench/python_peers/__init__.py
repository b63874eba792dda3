"""What bench/peers.py is made of."""
