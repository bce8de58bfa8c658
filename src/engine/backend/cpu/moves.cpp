#include <algorithm>
#include <cstring>

#include "engine/backend/cpu/bindings.h"
#include "engine/backend/shapes.h"
#include "engine/tensor/convert.h"

namespace halfwatt::cpu {
namespace {

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

// `count` elements from one place to another, in the dtype of the latter.
void move(
    const TensorView& from, Index from_at, const TensorView& to, Index to_at, Index count) {
  const std::size_t from_bytes = bytes_of(from.type.dtype);
  const std::size_t to_bytes = bytes_of(to.type.dtype);
  std::byte* const source = from.data + size(from_at) * from_bytes;
  std::byte* const target = to.data + size(to_at) * to_bytes;
  if (from.type.dtype == to.type.dtype) {
    std::memcpy(target, source, size(count) * to_bytes);
  } else {
    convert(TensorView{{from.type.dtype, Shape{count}}, source},
            TensorView{{to.type.dtype, Shape{count}}, target});
  }
}

// In squares of this side, whose rows and columns both stay in the L1 cache.
constexpr Index kSquare = 32;

template <class T>
void transpose_square(const T* x, T* y, const Shape& matrix, Index row, Index column) {
  const Index rows = std::min(kSquare, matrix[0] - row);
  const Index columns = std::min(kSquare, matrix[1] - column);
  for (Index j = column; j < column + columns; ++j) {
    for (Index i = row; i < row + rows; ++i) {
      y[j * matrix[0] + i] = x[i * matrix[1] + j];
    }
  }
}

template <class T>
void transpose(Call& call) {
  const Shape& shape = call.input(0).type.shape;
  const Shape matrix{shape.last(1), shape.last(0)};
  const Index each = matrix.elements();
  const Index strips = (matrix[0] + kSquare - 1) / kSquare;
  const Index all = each == 0 ? 0 : shape.elements() / each * strips;
  const auto* const x = reinterpret_cast<const T*>(call.input(0).data);
  auto* const y = reinterpret_cast<T*>(call.output(0).data);
  call.workers().parallel_for(all, 1, [&](Index begin, Index end, int) {
    for (Index at = begin; at < end; ++at) {
      const Index first = at / strips * each;
      for (Index column = 0; column < matrix[1]; column += kSquare) {
        transpose_square(x + first, y + first, matrix, at % strips * kSquare, column);
      }
    }
  });
}

}  // namespace

void run_constant(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const TensorView& to = call.output(0);
  const double value = call.attributes().number("value");
  if (value == 0) {
    std::memset(to.data, 0, to.type.bytes());
    return;
  }
  if (!is_float(to.type.dtype)) {
    const auto whole = static_cast<std::int64_t>(value);
    for (Index at = 0; at < to.type.shape.elements(); ++at) {
      std::memcpy(to.data + size(at) * bytes_of(to.type.dtype), &whole,
                  bytes_of(to.type.dtype));
    }
    return;
  }
  double one = value;
  const TensorView number{{DType::f64, Shape{1}}, reinterpret_cast<std::byte*>(&one)};
  for (Index at = 0; at < to.type.shape.elements(); ++at) {
    move(number, 0, to, at, 1);
  }
}

void run_write(Call& call) {
  if (!call.is_dry() && call.output(0).data != call.input(0).data) {
    std::memcpy(call.output(0).data, call.input(0).data, call.input(0).type.bytes());
  }
}

void run_expand(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Spread to = *spread(call.input(0).type.shape, call.output(0).type.shape);
  call.workers().parallel_for(to.outer * to.times, 1, [&](Index begin, Index end, int) {
    for (Index at = begin; at < end; ++at) {
      move(call.input(0), at / to.times * to.inner, call.output(0), at * to.inner, to.inner);
    }
  });
}

void run_slice(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
  const Index begin_at = call.attributes().integer("begin");
  const Around from = around(call.input(0).type.shape, axis);
  const Index piece = call.attributes().integer("count") * from.inner;
  call.workers().parallel_for(from.outer, 1, [&](Index begin, Index end, int) {
    for (Index at = begin; at < end; ++at) {
      move(call.input(0), (at * from.extent + begin_at) * from.inner, call.output(0),
           at * piece, piece);
    }
  });
}

void run_slice_gradient(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
  const Index begin_at = call.attributes().integer("begin");
  const Around to = around(call.output(0).type.shape, axis);
  const Index piece = call.input(0).type.shape[axis] * to.inner;
  std::memset(call.output(0).data, 0, call.output(0).type.bytes());
  call.workers().parallel_for(to.outer, 1, [&](Index begin, Index end, int) {
    for (Index at = begin; at < end; ++at) {
      move(call.input(0), at * piece, call.output(0), (at * to.extent + begin_at) * to.inner,
           piece);
    }
  });
}

void run_concatenate(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
  const Around to = around(call.output(0).type.shape, axis);
  call.workers().parallel_for(to.outer, 1, [&](Index begin, Index end, int) {
    for (Index at = begin; at < end; ++at) {
      Index place = at * to.extent * to.inner;
      for (std::size_t part = 0; part < call.inputs(); ++part) {
        const Index piece = call.input(part).type.shape[axis] * to.inner;
        move(call.input(part), at * piece, call.output(0), place, piece);
        place += piece;
      }
    }
  });
}

void run_transpose(Call& call) {
  if (call.is_dry()) {
    return;
  }
  switch (bytes_of(call.input(0).type.dtype)) {
    case 8:
      return transpose<std::uint64_t>(call);
    case 4:
      return transpose<std::uint32_t>(call);
    case 2:
      return transpose<std::uint16_t>(call);
    default:
      return transpose<std::uint8_t>(call);
  }
}

}  // namespace halfwatt::cpu
