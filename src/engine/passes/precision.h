#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"

namespace halfwatt {

/// How operands of fp8 are scaled by what they were in the steps before, so that nobody has to
/// look at all of one before it is rounded: as Transformer Engine's recipe of that name.
struct DelayedScaling {
  enum class Algorithm { max, most_recent };
  std::int64_t history = 1024;           ///< steps, the one at hand among them
  Algorithm algorithm = Algorithm::max;  ///< what the scale follows from: the history's largest
                                         ///< magnitude, or the last one
  std::int64_t margin = 0;               ///< powers of 2 that stay free above it
};

/// Which dtype is used for what: a precision mode is a row of this and no code.
struct Precision {
  enum class Scale {
    none,
    dynamic,  ///< as torch.amp.GradScaler
  };
  std::string name;
  DType parameter = DType::f32;  ///< as it is stored, computed with and saved
  DType compute = DType::f32;    ///< operands of products
  DType output = DType::f32;     ///< of products
  /// f16: sums within products of matrices of f16 may be so where a device gains by it, in an
  /// inference; else they are f32 or wider.
  DType accumulate = DType::f32;
  std::optional<DType> images;  ///< what images are cast to; nullopt: not before a product
  std::optional<DType> norm;    ///< layer_norm, in and out; nullopt: that of its input
  DType loss = DType::f32;
  DType gradient = DType::f32;     ///< of a parameter, from one micro-batch
  DType accumulated = DType::f32;  ///< over micro-batches
  DType moment = DType::f32;       ///< states of the optimizer
  DType arithmetic = DType::f32;   ///< of the optimizer
  bool masters = false;  ///< parameters are f32 for the optimizer, and copied for the model
  Scale scale = Scale::none;
  bool stochastic = false;                ///< rounding of updated parameters
  std::optional<DelayedScaling> delayed;  ///< of fp8; nullopt: by the operand itself
};

/// Every mode, in the order in which they are listed to users.
std::span<const Precision> precisions();

/// Their names as users are told them: "fp32, tf32, ...".
std::string precision_names();

/// The mode that a user calls `name`, or that `param=bf16,compute=bf16,output=f32` says in
/// words: a parameter, compute and output dtype, and perhaps `accumulate=fp16`, the rest
/// following from these. Errors: no such mode or dtype, the message lists what there is; sums
/// in fp16 of products that are not.
Result<Precision> precision_named(std::string_view name);

/// Another mode for some layers: `head.*=fp32`.
struct PrecisionOverride {
  std::string pattern;  ///< of layer paths; `*` is any text, `[0-5]` any of these
  Precision precision;
};

/// Reads `PATTERN=MODE`. Errors: as precision_named().
Result<PrecisionOverride> precision_override(std::string_view text);

/// Whether `path` is matched as a whole by `pattern`.
bool matches(std::string_view pattern, std::string_view path);
/// The same, and a pattern of what is in a layer covers the layer: `head.*` covers `head`.
bool covers(std::string_view pattern, const std::string& layer);
/// Whether any of `patterns` matches the name of a parameter or of a layer that it is in:
/// `blocks.0`, `blocks.0.*` and `*.weight` all name `blocks.0.norm1.weight`.
bool any_names(std::span<const std::string> patterns, const std::string& parameter);

/// What operands of fp8 products are multiplied with, whatever they hold, by their names:
/// "blocks.0.mlp.fc1.input".
using Fp8Scales = std::map<std::string, float, std::less<>>;

/// The forward graph, which a model made in f32, in this precision: casts put in as PyTorch's
/// autocast puts them in, parameters read in the dtype that they are computed with (a copy in
/// it, where the parameter itself has another). `scales` are of all operands of fp8 that would
/// be scaled by themselves; of others they are not looked at. Errors: a pattern that matches no
/// layer; an operand that `scales` does not have.
Result<Graph> with_precision(const Graph& graph,
                             const Precision& precision,
                             std::span<const PrecisionOverride> overrides,
                             const std::optional<Fp8Scales>& scales = {});

/// Whether some product may add up in fp16, which a training does not.
bool accumulates_narrow(const Precision& precision,
                        std::span<const PrecisionOverride> overrides);

/// The name of the copy of parameter `name` in `dtype`.
std::string copy_name(std::string_view parameter, DType dtype);

}  // namespace halfwatt
