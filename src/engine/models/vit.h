#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/tensor/normalisation.h"

namespace halfwatt {

/// A Vision Transformer (Dosovitskiy et al. 2021) as timm builds it.
struct VitConfig {
  enum class Pool {
    token,  ///< the head sees the class token
    mean,   ///< it sees the mean of the others; the last norm comes after it (timm's fc_norm)
  };
  std::string name;
  std::int64_t image = 224;  ///< side in pixels
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t width = 768;
  std::int64_t depth = 12;
  std::int64_t heads = 12;
  std::int64_t hidden = 3072;   ///< features within the MLP
  std::int64_t classes = 1000;  ///< 1: one logit, of a binary question
  Pool pool = Pool::token;
  double drop_path = 0;  ///< of the last block; from 0 at the first it rises linearly
  double dropout = 0;    ///< before the head
  double eps = 1e-6;

  std::int64_t tokens() const { return image / patch * (image / patch) + 1; }
};

/// The model that timm calls `name`: vit_{tiny,small,base,large}_patch{16,32}_{224,384}, or a
/// micro size for tests and small images, vit_micro_patch4_16 (any patch and image). Errors: no
/// such name; the message names those that there are.
Result<VitConfig> vit_named(std::string_view name);

/// What a graph of the model is for.
enum class ModelMode {
  infer,     ///< to logits
  evaluate,  ///< to logits and loss
  train,     ///< to the loss, with dropout and DropPath
};

/// The model over `batch` images, in f32. Inputs: `images` [B, C, S, S] and, but for inference,
/// `labels` (i64 [B]; f32 [B, 1] of one logit), `valid` (i64, how many samples count) and,
/// where something is dropped, `random` (i64 3). Results: `logits` [B, classes]; `loss`,
/// `losses` [B]. `smoothing` is of the labels. With `pixels`, which is of 3 channels, the
/// images are the bytes of pictures, u8, and are normalised by it before all else.
Graph vit(const VitConfig& config,
          std::int64_t batch,
          ModelMode mode,
          double smoothing = 0,
          const std::optional<Normalisation>& pixels = std::nullopt);

/// The parameters of the model, in the order of timm's state_dict.
std::vector<StateSpec> vit_parameters(const VitConfig& config);

}  // namespace halfwatt
