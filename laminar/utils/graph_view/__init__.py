"""`view_graph`: a graph as one page that a browser shows, with nothing but itself."""

from .contents import GraphContents as GraphContents
from .items import Edge as Edge
from .items import Item as Item
from .view import view_graph as view_graph
