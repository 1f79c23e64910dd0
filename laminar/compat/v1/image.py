"""`tf.image`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "ResizeMethod": ".pictures:ResizeMethod",
    "adjust_brightness": ".pictures:adjust_brightness",
    "adjust_contrast": ".pictures:adjust_contrast",
    "central_crop": ".pictures:central_crop",
    "convert_image_dtype": ".pictures:convert_image_dtype",
    "crop_to_bounding_box": ".pictures:crop_to_bounding_box",
    "decode_image": ".inputs:decode_image",
    "decode_jpeg": ".inputs:decode_jpeg",
    "decode_png": ".inputs:decode_png",
    "encode_jpeg": ".inputs:encode_jpeg",
    "encode_png": ".inputs:encode_png",
    "flip_left_right": ".pictures:flip_left_right",
    "flip_up_down": ".pictures:flip_up_down",
    "grayscale_to_rgb": ".pictures:grayscale_to_rgb",
    "pad_to_bounding_box": ".pictures:pad_to_bounding_box",
    "per_image_standardization": ".pictures:per_image_standardization",
    "random_brightness": ".pictures:random_brightness",
    "random_contrast": ".pictures:random_contrast",
    "random_flip_left_right": ".pictures:random_flip_left_right",
    "random_flip_up_down": ".pictures:random_flip_up_down",
    "resize_bilinear": ".pictures:resize_bilinear",
    "resize_image_with_crop_or_pad": ".pictures:resize_image_with_crop_or_pad",
    "resize_images": ".pictures:resize_images",
    "resize_nearest_neighbor": ".pictures:resize_nearest_neighbor",
    "rgb_to_grayscale": ("images, name=None", "ops.image:rgb_to_grayscale"),
    "transpose_image": ".pictures:transpose_image",
}

__getattr__, __dir__ = face(__name__, NAMES)
