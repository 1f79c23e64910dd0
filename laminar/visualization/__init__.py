"""Pictures of images with what is known of them: boxes, masks, labels."""

from .drawing import draw_bounding_boxes as draw_bounding_boxes
from .drawing import draw_segmentation_masks as draw_segmentation_masks
from .galleries import plot_bounding_box_gallery as plot_bounding_box_gallery
from .galleries import plot_image_gallery as plot_image_gallery
from .galleries import plot_segmentation_mask_gallery as plot_segmentation_mask_gallery
