"""Readers of data sets with many outputs: strict, they drop and convert nothing silently."""
