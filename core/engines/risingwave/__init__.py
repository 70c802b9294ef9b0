"""RisingWave: virtual nodes by CRC-32, in ranges of actors."""
