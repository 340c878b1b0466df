"""The heart of the product: what a run is allowed to say about itself."""
