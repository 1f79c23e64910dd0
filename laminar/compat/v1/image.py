"""`tf.image`."""

from __future__ import annotations

from .face import Line, face

# Also in `tf.io`.
FILES: dict[str, Line] = {
    name: f".file_parts:{name}"
    for name in (
        "decode_and_crop_jpeg",
        "decode_bmp",
        "decode_gif",
        "extract_jpeg_shape",
        "is_jpeg",
    )
}
NAMES: dict[str, Line] = {
    "rgb_to_yiq": ".colors:rgb_to_yiq",
    "rgb_to_yuv": ".colors:rgb_to_yuv",
    "yiq_to_rgb": ".colors:yiq_to_rgb",
    "yuv_to_rgb": ".colors:yuv_to_rgb",
    "adjust_hue": ".colors:adjust_hue",
    "adjust_saturation": ".colors:adjust_saturation",
    "adjust_gamma": ".colors:adjust_gamma",
    "random_hue": ".colors:random_hue",
    "random_saturation": ".colors:random_saturation",
    "rot90": ".colors:rot90",
    "total_variation": ".colors:total_variation",
    "image_gradients": ".colors:image_gradients",
    "psnr": ".colors:psnr",
    **{
        f"non_max_suppression{kind}": f".suppression:non_max_suppression{kind}"
        for kind in ("", "_overlaps", "_padded", "_with_scores")
    },
    "combined_non_max_suppression": ".suppression:combined_non_max_suppression",
    "sample_distorted_bounding_box": ".boxes:sample_distorted_bounding_box",
    **{
        name: f".similarity:{name}"
        for name in ("extract_glimpse", "sobel_edges", "ssim", "ssim_multiscale")
    },
    **FILES,
    "adjust_jpeg_quality": ".file_parts:adjust_jpeg_quality",
    "random_jpeg_quality": ".file_parts:random_jpeg_quality",
    "crop_and_resize": ".boxes:crop_and_resize",
    "extract_image_patches": ".boxes:extract_image_patches",
    "draw_bounding_boxes": ".boxes:draw_bounding_boxes",
    "extract_patches": ".boxes:extract_image_patches",
    "rgb_to_hsv": ("images, name=None", "ops.image:rgb_to_hsv"),
    "hsv_to_rgb": ("images, name=None", "ops.image:hsv_to_rgb"),
    "random_crop": ".drawing:random_crop",
    "transpose": ".pictures:transpose_image",
    "ResizeMethod": ".resizing:ResizeMethod",
    "adjust_brightness": ".pictures:adjust_brightness",
    "adjust_contrast": ".pictures:adjust_contrast",
    "central_crop": ".framing:central_crop",
    "convert_image_dtype": ".pictures:convert_image_dtype",
    "crop_to_bounding_box": ".framing:crop_to_bounding_box",
    "decode_image": ".inputs:decode_image",
    "decode_jpeg": ".inputs:decode_jpeg",
    "decode_png": ".inputs:decode_png",
    "encode_jpeg": ".inputs:encode_jpeg",
    "encode_png": ".inputs:encode_png",
    "flip_left_right": ".pictures:flip_left_right",
    "flip_up_down": ".pictures:flip_up_down",
    "grayscale_to_rgb": ".pictures:grayscale_to_rgb",
    "pad_to_bounding_box": ".framing:pad_to_bounding_box",
    "per_image_standardization": ".pictures:per_image_standardization",
    "random_brightness": ".pictures:random_brightness",
    "random_contrast": ".pictures:random_contrast",
    "random_flip_left_right": ".pictures:random_flip_left_right",
    "random_flip_up_down": ".pictures:random_flip_up_down",
    "resize_area": ".resizing:resize_area",
    "resize_bicubic": ".resizing:resize_bicubic",
    "resize_bilinear": ".resizing:resize_bilinear",
    "resize_image_with_crop_or_pad": ".framing:resize_image_with_crop_or_pad",
    "resize_image_with_pad": ".framing:resize_image_with_pad",
    "resize_images": ".resizing:resize_images",
    "resize_nearest_neighbor": ".resizing:resize_nearest_neighbor",
    "resize": ".resizing:resize_images",
    "resize_with_crop_or_pad": ".framing:resize_image_with_crop_or_pad",
    "rgb_to_grayscale": ("images, name=None", "ops.image:rgb_to_grayscale"),
    "transpose_image": ".pictures:transpose_image",
}

__getattr__, __dir__ = face(__name__, NAMES)
