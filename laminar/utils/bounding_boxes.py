"""Bounding boxes of images: their formats, what becomes of them, how far they overlap."""

from laminar.bounding_boxes import affine_transform as affine_transform
from laminar.bounding_boxes import clip_to_image_size as clip_to_image_size
from laminar.bounding_boxes import compute_ciou as compute_ciou
from laminar.bounding_boxes import compute_iou as compute_iou
from laminar.bounding_boxes import convert_format as convert_format
from laminar.bounding_boxes import crop as crop
from laminar.bounding_boxes import decode_deltas_to_boxes as decode_deltas_to_boxes
from laminar.bounding_boxes import encode_box_to_deltas as encode_box_to_deltas
from laminar.bounding_boxes import pad as pad
