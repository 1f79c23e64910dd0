"""`tf.layers`: layers as functions; the classes are laminar's own."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "dense": ".functional_layers:dense",
    "conv1d": ".functional_convolutions:conv1d",
    "conv2d": ".functional_convolutions:conv2d",
    "conv3d": ".functional_convolutions:conv3d",
    "conv2d_transpose": ".functional_convolutions:conv2d_transpose",
    "conv3d_transpose": ".functional_convolutions:conv3d_transpose",
    "separable_conv1d": ".functional_convolutions:separable_conv1d",
    "separable_conv2d": ".functional_convolutions:separable_conv2d",
    "flatten": ".functional_layers:flatten",
    "dropout": ".functional_layers:dropout",
    "batch_normalization": ".functional_layers:batch_normalization",
    "max_pooling1d": ".functional_layers:max_pooling",
    "average_pooling1d": ".functional_layers:average_pooling",
    "max_pooling2d": ".functional_layers:max_pooling",
    "average_pooling2d": ".functional_layers:average_pooling",
    "max_pooling3d": ".functional_layers:max_pooling",
    "average_pooling3d": ".functional_layers:average_pooling",
    "Dense": "layers:Dense",
    "Conv1D": "layers:Conv1D",
    "Conv2D": "layers:Conv2D",
    "Conv3D": "layers:Conv3D",
    "Flatten": "layers:Flatten",
    "Dropout": "layers:Dropout",
    "BatchNormalization": "layers:BatchNormalization",
    "MaxPooling1D": "layers:MaxPooling1D",
    "MaxPooling2D": "layers:MaxPooling2D",
    "MaxPooling3D": "layers:MaxPooling3D",
    "AveragePooling1D": "layers:AveragePooling1D",
    "AveragePooling2D": "layers:AveragePooling2D",
    "AveragePooling3D": "layers:AveragePooling3D",
    "Conv3DTranspose": "layers:Conv3DTranspose",
    "SeparableConv1D": "layers:SeparableConv1D",
    "SeparableConv2D": "layers:SeparableConv2D",
    "Conv2DTranspose": "layers:Conv2DTranspose",
    "InputSpec": "layers:InputSpec",
    "Layer": "layers:Layer",
}

__getattr__, __dir__ = face(__name__, NAMES)
