#include "engine/tensor/panels.h"

#include <cstring>

#include "base/check.h"

namespace halfwatt {
namespace {

// `move(at_matrix, at_panels, bytes)` for every piece that lies together in both.
template <class Move>
void for_pieces(const TensorType& type, std::int64_t columns, std::int64_t steps, Move&& move) {
  HALFWATT_CHECK(
      type.shape.rank() == 2 && type.shape[0] % columns == 0 && type.shape[1] % steps == 0,
      "a matrix of whole panels");
  const std::int64_t width = type.shape[1];
  const std::size_t bytes = bytes_of(type.dtype);
  std::size_t at = 0;
  for (std::int64_t first = 0; first < type.shape[0]; first += columns) {
    for (std::int64_t step = 0; step < width; step += steps) {
      for (std::int64_t row = first; row < first + columns; ++row) {
        const auto piece = static_cast<std::size_t>(steps) * bytes;
        move(static_cast<std::size_t>(row * width + step) * bytes, at, piece);
        at += piece;
      }
    }
  }
}

}  // namespace

void to_panels(const TensorView& matrix,
               std::int64_t columns,
               std::int64_t steps,
               const TensorView& panels) {
  for_pieces(matrix.type, columns, steps,
             [&](std::size_t at_matrix, std::size_t at_panels, std::size_t bytes) {
               std::memcpy(panels.data + at_panels, matrix.data + at_matrix, bytes);
             });
}

void from_panels(const TensorView& panels,
                 std::int64_t columns,
                 std::int64_t steps,
                 const TensorView& matrix) {
  for_pieces(matrix.type, columns, steps,
             [&](std::size_t at_matrix, std::size_t at_panels, std::size_t bytes) {
               std::memcpy(matrix.data + at_matrix, panels.data + at_panels, bytes);
             });
}

}  // namespace halfwatt
