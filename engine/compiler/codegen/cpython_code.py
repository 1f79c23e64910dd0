"""Native code that CPython calls as built-in functions.

    call(ptr self, ptr list) -> ptr: a plan on the items of a list (see cpython_calls.py);
    tensors(ptr self, ptr arguments, i64 count) -> ptr: tensors of values and element types.

`self` is an array of words, named below. What they do with Python's objects they do as C would, by
functions of Python's, but for reading fields whose places cluster_kernel.py looks for when it is
loaded.
"""

from __future__ import annotations

from collections.abc import Callable

from ...graph import int32, int64
from ..target import host
from ..target.code import Code
from ..target.llvm import vector_bytes
from . import driver_words
from .abi import COUNT, DATA, ITEMS, RANK, SIZES, TYPE, at, field, pointer, put, word
from .control import fold, replaced, when
from .conversions import convert
from .function import POINTER, IRFunction, Module, Value
from .memory import address_at, store

# What a call gives besides the driver's status: the arrays have other shapes.
OTHER_SHAPES = 3

# The words of `self`: what it runs, and the plan;
CALL_RUN, CALL_PLAN = range(2)
# functions of Python: those that leave its lock and take it again, and those that make an int, take
# a part of a list, keep and drop an object; NumPy's that make an array and have it keep another;
CALL_LEAVE, CALL_TAKE, CALL_INT, CALL_PART, CALL_KEEP, CALL_DROP = range(2, 8)
CALL_MAKE, CALL_REFER = range(8, 10)
# the types of an array and of bytes, None, how many arrays are looked at, where results begin, how
# many they are, and where the forms are: (rank, where the sizes are), for a result (element type,
# rank, where the sizes are, bytes of the memory in which it begins at a line of the cache, or 0).
CALL_ARRAY_TYPE, CALL_BYTE, CALL_NONE, CALL_GIVEN, CALL_FIRST = range(10, 15)
CALL_RESULTS, CALL_GIVEN_FORMS, CALL_RESULT_FORMS = range(15, 18)
CALL_WORDS = 18
GIVEN_WORDS, RESULT_WORDS = 2, 4

# Flags of an ndarray: contiguous, aligned, can be written.
_PLAIN = 0x501

# The words of `self` of `tensors`: functions of Python that make and keep an object, None, the type
# of a tensor, and how far from its beginning its parts are.
TENSORS_NEW, TENSORS_KEEP, TENSORS_NONE, TENSORS_TYPE = range(4)
TENSORS_VALUE, TENSORS_DTYPE, TENSORS_SHAPE = range(4, 7)
TENSORS_WORDS = 7


def text() -> str:
    """The IR of the functions."""
    module = Module()
    _call(module)
    _tensors(module)
    return module.text()


def code(symbol: str) -> Code:
    """The code of one of them."""
    return Code(symbol, vector_bytes(), text, ())


def _call(module: Module) -> None:
    """`call(ptr self, ptr list) -> ptr`: run a plan on the items of a list.

    It replaces each None among the results by a new array. It gives the list of results; a number
    where the plan has not been run to its end. Others may have Python's lock meanwhile.
    """
    fn = IRFunction(module, "call", [POINTER, POINTER])
    held, objects = fn.arguments
    words = pointer(fn, field(fn, held, DATA, int64))
    items = pointer(fn, field(fn, objects, ITEMS, int64))

    def at_word(number: int) -> str:
        return pointer(fn, word(fn, words, number))

    def called(number: int, arguments: str) -> Value:
        """What a function gives, an address."""
        found = fn.named(f"call ptr {at_word(number)}({arguments})")
        return fn.instruction(f"ptrtoint ptr {found} to i64", int64, 0)

    def ran() -> Value:
        """Run the plan: the results, or its status."""
        run, plan = at_word(CALL_RUN), at_word(CALL_PLAN)
        thread = fn.named(f"call ptr {at_word(CALL_LEAVE)}()")
        fn.line(f"call void {run}(ptr {plan}, ptr {items})")
        fn.line(f"call void {at_word(CALL_TAKE)}(ptr {thread})")
        status = word(fn, plan, driver_words.STATUS)
        number = fn.number(0)
        (number,) = replaced(fn, status != driver_words.DONE, [number], lambda: [int_of(status)])
        part = f"ptr {objects}, {first}, {first + results}"
        (found,) = replaced(
            fn, status == driver_words.DONE, [number], lambda: [called(CALL_PART, part)]
        )
        return found

    def int_of(value: Value) -> Value:
        return called(CALL_INT, str(value))

    given, first, results = (word(fn, words, i) for i in (CALL_GIVEN, CALL_FIRST, CALL_RESULTS))
    fits = _fits(fn, items, given, at_word(CALL_GIVEN_FORMS), word(fn, words, CALL_ARRAY_TYPE))

    def made_and_ran() -> list[Value]:
        there = _make(fn, items, first, results, at_word)
        return replaced(fn, there, [fn.number(0)], lambda: [ran()])

    (found,) = replaced(fn, fits, [fn.number(0)], made_and_ran)
    (found,) = replaced(fn, ~fits, [found], lambda: [int_of(fn.number(OTHER_SHAPES))])
    fn.result = f"ptr {pointer(fn, found)}"


def _fits(fn: IRFunction, items: str, count: Value, forms: str, array_type: Value) -> Value:
    """Whether those of the first items that are arrays have these forms."""

    def look(i: Value, carried: list[Value]) -> list[Value]:
        held, form = pointer(fn, word(fn, items, i)), address_at(fn, forms, i, 8 * GIVEN_WORDS)
        is_array = field(fn, held, TYPE, int64) == array_type
        yes = i == i  # what is no array, the driver refuses
        (same,) = replaced(fn, is_array, [yes], lambda: [of_form(held, form)])
        return [carried[0] & same]

    def of_form(held: str, form: str) -> Value:
        rank = convert(fn, field(fn, held, RANK, int32), int64)
        return replaced(fn, rank == word(fn, form, 0), [rank != rank], lambda: sizes(held, form))[0]

    def sizes(held: str, form: str) -> list[Value]:
        found, wanted = pointer(fn, field(fn, held, SIZES, int64)), pointer(fn, word(fn, form, 1))

        def same(i: Value, carried: list[Value]) -> list[Value]:
            return [carried[0] & (word(fn, found, i) == word(fn, wanted, i))]

        rank = word(fn, form, 0)
        return fold(fn, fn.number(0), rank, 1, [rank == rank], same)

    (found,) = fold(fn, fn.number(0), count, 1, [count == count], look)
    return found


def _make(
    fn: IRFunction, items: str, first: Value, count: Value, at_word: Callable[[int], str]
) -> Value:
    """Make the results that are not there yet; whether all are there then."""
    none, forms, byte = at_word(CALL_NONE), at_word(CALL_RESULT_FORMS), at_word(CALL_BYTE)
    array_type, make, refer = at_word(CALL_ARRAY_TYPE), at_word(CALL_MAKE), at_word(CALL_REFER)
    keep, drop = at_word(CALL_KEEP), at_word(CALL_DROP)
    no_object, nothing = fn.instruction(f"ptrtoint ptr {none} to i64", int64, 0), fn.number(0)

    def one(i: Value, carried: list[Value]) -> list[Value]:
        place = first + i
        is_missing = carried[0] & (word(fn, items, place) == no_object)
        form = address_at(fn, forms, i, 8 * RESULT_WORDS)
        return replaced(fn, is_missing, carried, lambda: new(place, form))

    def array(dtype: str, rank: Value, sizes: str, data: Value, flags: Value) -> Value:
        """A new array, in its own memory if `data` is 0; 0 if there is none."""
        fn.line(f"call void {keep}(ptr {dtype})")  # what makes an array takes it over
        number, at = convert(fn, rank, int32), pointer(fn, data)
        flags = convert(fn, flags, int32)
        made = fn.named(
            f"call ptr {make}(ptr {array_type}, ptr {dtype}, {number}, "
            f"ptr {sizes}, ptr null, ptr {at}, {flags}, ptr null)"
        )
        return fn.instruction(f"ptrtoint ptr {made} to i64", int64, 0)

    def new(place: Value, form: str) -> list[Value]:
        dtype, sizes = pointer(fn, word(fn, form, 0)), pointer(fn, word(fn, form, 2))
        is_large = word(fn, form, 3) != 0

        def bytes_of() -> list[Value]:
            return [array(byte, fn.number(1), at(fn, form, 3), nothing, nothing)]

        (memory,) = replaced(fn, is_large, [nothing], bytes_of)
        held = memory != 0

        def line() -> list[Value]:
            """The first one in the memory."""
            data = field(fn, pointer(fn, memory), DATA, int64) + (host.LINE - 1)
            return [fn.binary("and", data, -host.LINE), fn.number(_PLAIN)]

        data, flags = replaced(fn, held, [nothing, nothing], line)

        def whole() -> list[Value]:
            return [array(dtype, word(fn, form, 1), sizes, data, flags)]

        (made,) = replaced(fn, held | ~is_large, [nothing], whole)
        is_made = made != 0
        result, kept = pointer(fn, made), pointer(fn, memory)

        def own() -> None:
            """It takes the memory over."""
            fn.line(f"{fn.fresh()} = call i32 {refer}(ptr {result}, ptr {kept})")

        def replace() -> None:
            put(fn, items, place, made)
            fn.line(f"call void {drop}(ptr {none})")

        when(fn, held & is_made, own)
        when(fn, held & ~is_made, lambda: fn.line(f"call void {drop}(ptr {kept})"))
        when(fn, is_made, replace)
        return [is_made]

    (there,) = fold(fn, fn.number(0), count, 1, [count == count], one)
    return there


def _tensors(module: Module) -> None:
    """`tensors(ptr self, ptr arguments, i64 count) -> ptr`: a tensor for each item of a list.

    The arguments are the list of values, where tensors take their places, and one of their element
    types. It gives the first list.
    """
    fn = IRFunction(module, "tensors", [POINTER, POINTER, "i64"])
    held, arguments, _ = fn.arguments
    words = pointer(fn, field(fn, held, DATA, int64))
    values, dtypes = (pointer(fn, word(fn, arguments, i)) for i in (0, 1))
    items, kinds = (pointer(fn, field(fn, x, ITEMS, int64)) for x in (values, dtypes))
    new, keep, none, kind = (
        pointer(fn, word(fn, words, i))
        for i in (TENSORS_NEW, TENSORS_KEEP, TENSORS_NONE, TENSORS_TYPE)
    )

    def one(i: Value, carried: list[Value]) -> list[Value]:
        return replaced(fn, carried[0], carried, lambda: made(i))

    def made(i: Value) -> list[Value]:
        tensor = fn.named(f"call ptr {new}(ptr {kind}, i64 0)")
        address = fn.instruction(f"ptrtoint ptr {tensor} to i64", int64, 0)

        def fill() -> None:
            dtype = word(fn, kinds, i)
            for x in (pointer(fn, dtype), none):
                fn.line(f"call void {keep}(ptr {x})")
            parts = (word(fn, items, i), dtype, word(fn, words, TENSORS_NONE))  # the list's own
            for part, place in zip(parts, range(TENSORS_VALUE, TENSORS_WORDS), strict=True):
                store(fn, part, address_at(fn, tensor, word(fn, words, place), 1))
            put(fn, items, i, address)

        when(fn, address != 0, fill)
        return [address != 0]

    lengths = [field(fn, x, COUNT, int64) for x in (values, dtypes)]
    count = fn.select(lengths[0] < lengths[1], *lengths)
    (there,) = fold(fn, fn.number(0), count, 1, [count == count], one)
    when(fn, there, lambda: fn.line(f"call void {keep}(ptr {values})"))
    found = fn.instruction(f"ptrtoint ptr {values} to i64", int64, 0)
    fn.result = f"ptr {pointer(fn, fn.select(there, found, fn.number(0)))}"
