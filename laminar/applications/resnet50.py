"""ResNet50, under the name of module that Keras has for it."""

from .resnet import ResNet50 as ResNet50
from .resnet import decode_predictions as decode_predictions
from .resnet import preprocess_input as preprocess_input
