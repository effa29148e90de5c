"""Machine instructions that numba has no name for."""

from contextlib import suppress
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def multiply_high(typingctx: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product of two uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def float_bits(typingctx: Any, x: Any) -> Any:
    """The bits of a float64 as an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def bits_float(typingctx: Any, bits: Any) -> Any:
    """The float64 that has the given bits (int64)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask the processor to bring array[index], or the start of that row, into its cache; no effect on results.

    What is read-only is asked for such that it may stay in the caches of other processors, too. An llvmlite that builds
    addresses otherwise leaves it out.
    """
    writes = int(array.mutable)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with suppress(AttributeError, TypeError, NotImplementedError):
            address = _address(context, builder, array, signature.args[0], args)
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [address.type, i32, i32, i32])
            function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
            builder.call(function, [address, ir.Constant(i32, writes), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def _address(context: Any, builder: Any, array: Any, kind: Any, args: Any) -> Any:
    """Of args[1] in the array args[0], which is of that kind."""
    parts = context.make_array(kind)(context, builder, args[0])
    base = builder.bitcast(parts.data, ir.IntType(8).as_pointer())
    if array.ndim == 1 and array.is_c_contig:  # a constant: the multiplication is a shift
        stride = ir.Constant(ir.IntType(64), context.get_abi_sizeof(context.get_data_type(array.dtype)))
    else:
        stride = builder.extract_value(parts.strides, 0)
    return builder.gep(base, [builder.mul(args[1], stride)])
