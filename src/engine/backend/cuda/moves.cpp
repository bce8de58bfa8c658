#include "engine/backend/cuda/kernels/moves.h"

#include <cuda_runtime.h>

#include "engine/backend/cuda/bindings.h"
#include "engine/backend/cuda/device.h"
#include "engine/backend/shapes.h"

namespace halfwatt::cuda {

void run_write(Call& call) {
  if (!call.is_dry() && call.output(0).data != call.input(0).data) {
    check(cudaMemcpyAsync(call.output(0).data, call.input(0).data, call.input(0).type.bytes(),
                          cudaMemcpyDeviceToDevice, call.stream()),
          "copy");
  }
}

void run_expand(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Spread to = *spread(call.input(0).type.shape, call.output(0).type.shape);
  Runs runs{};
  runs.pieces = to.outer * to.times;
  runs.length = runs.from_step = runs.to_step = to.inner;
  runs.times = to.times;
  move(call.stream(), call.in(0), call.out(0), runs);
}

void run_slice(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
  const Around from = around(call.input(0).type.shape, axis);
  Runs runs{};
  runs.pieces = from.outer;
  runs.length = runs.to_step = call.attributes().integer("count") * from.inner;
  runs.from_at = call.attributes().integer("begin") * from.inner;
  runs.from_step = from.extent * from.inner;
  move(call.stream(), call.in(0), call.out(0), runs);
}

void run_slice_gradient(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
  const Around to = around(call.output(0).type.shape, axis);
  Runs runs{};
  runs.pieces = to.outer;
  runs.length = runs.from_step = call.input(0).type.shape[axis] * to.inner;
  runs.to_at = call.attributes().integer("begin") * to.inner;
  runs.to_step = to.extent * to.inner;
  check(cudaMemsetAsync(call.output(0).data, 0, call.output(0).type.bytes(), call.stream()),
        "clear");
  move(call.stream(), call.in(0), call.out(0), runs);
}

void run_concatenate(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const auto axis = static_cast<std::size_t>(call.attributes().integer("axis"));
  const Around to = around(call.output(0).type.shape, axis);
  Index begin = 0;
  for (std::size_t part = 0; part < call.inputs(); ++part) {
    Runs runs{};
    runs.pieces = to.outer;
    runs.length = runs.from_step = call.input(part).type.shape[axis] * to.inner;
    runs.to_at = begin;
    runs.to_step = to.extent * to.inner;
    move(call.stream(), call.in(part), call.out(0), runs);
    begin += runs.length;
  }
}

void run_transpose(Call& call) {
  if (call.is_dry()) {
    return;
  }
  const Shape& shape = call.input(0).type.shape;
  const Index rows = shape.last(1);
  const Index columns = shape.last(0);
  const Index each = rows * columns;
  transpose(call.stream(), call.input(0).data, call.output(0).data,
            each == 0 ? 0 : shape.elements() / each, rows, columns,
            bytes_of(call.input(0).type.dtype));
}

}  // namespace halfwatt::cuda
