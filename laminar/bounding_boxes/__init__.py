"""Bounding boxes of images: their formats, what becomes of them, how far they overlap."""

from .anchors import decode_deltas_to_boxes as decode_deltas_to_boxes
from .anchors import encode_box_to_deltas as encode_box_to_deltas
from .formats import convert_format as convert_format
from .moving import affine_transform as affine_transform
from .moving import clip_to_image_size as clip_to_image_size
from .moving import crop as crop
from .moving import pad as pad
from .overlap import compute_ciou as compute_ciou
from .overlap import compute_iou as compute_iou
