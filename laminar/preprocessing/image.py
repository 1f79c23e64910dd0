"""Older names of tools for images; see `laminar.utils`."""

from laminar.utils.images import array_to_img as array_to_img
from laminar.utils.images import img_to_array as img_to_array
from laminar.utils.images import load_img as load_img
from laminar.utils.images import save_img as save_img
from laminar.utils.images import smart_resize as smart_resize
