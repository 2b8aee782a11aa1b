"""Giving tensors the blocked shape of their bytes: what `BlockNzTensorViews` and `BlockMxScaleTensorViews` share."""
