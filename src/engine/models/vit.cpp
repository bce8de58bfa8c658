#include "engine/models/vit.h"

#include <fmt/format.h>

#include <array>

#include "engine/models/layers.h"

namespace halfwatt {
namespace {

struct Size {
  std::string_view name;
  std::int64_t width, depth, heads;
};
constexpr std::array<Size, 5> kSizes = {{{"micro", 32, 2, 2},
                                         {"tiny", 192, 12, 3},
                                         {"small", 384, 12, 6},
                                         {"base", 768, 12, 12},
                                         {"large", 1024, 24, 16}}};

Value normalise(Builder& build, Value pictures, const Normalisation& by) {
  const auto doubles = [](const std::array<float, 3>& floats) {
    return std::vector<double>(floats.begin(), floats.end());
  };
  build.set_name("patch_embed");
  return build.add(Op::normalise, {pictures},
                   {{"mean", doubles(by.mean)}, {"deviation", doubles(by.deviation)}});
}

// [B, C, S, S] to [B, N + 1, D]: patches as tokens, the class token before them.
Value embed(const VitConfig& config, Builder& build, Layers& layers, Value images) {
  build.set_name("cls_token");
  const Value cls = layers.parameter("cls_token", Shape{1, 1, config.width});
  build.set_name("pos_embed");
  const Value position = layers.parameter("pos_embed", Shape{1, config.tokens(), config.width});
  build.set_name("patch_embed.proj");
  const Value weight =
      layers.parameter("patch_embed.proj.weight",
                       Shape{config.width, config.channels, config.patch, config.patch});
  const Value bias = layers.parameter("patch_embed.proj.bias", Shape{config.width});
  const Value map = build.add(Op::convolution, {images, weight, bias},
                              {{"stride", config.patch}, {"padding", std::int64_t{0}}});
  build.set_name("patch_embed");
  const std::int64_t batch = build.type(images).shape[0];
  const Value flat = build.reshape(map, Shape{batch, config.width, config.tokens() - 1});
  const Value tokens = build.add(Op::transpose, {flat});

  build.set_name("pos_embed");
  const Value all_cls =
      build.add(Op::expand, {cls}, {{"shape", Shape{batch, 1, config.width}}});
  const Value sequence =
      build.add(Op::concatenate, {all_cls, tokens}, {{"axis", std::int64_t{1}}});
  return build.add(Op::add, {sequence, position});
}

struct Regularisation {
  double drop_path = 0;
  std::optional<Value> random;
};

Value block(const VitConfig& config,
            Builder& build,
            Layers& layers,
            Value x,
            const std::string& path,
            const Regularisation& drop) {
  const auto add = [&](const std::string& branch, Value to, Value value) {
    const Value kept = layers.drop_path(path + branch, value, drop.drop_path, drop.random);
    build.set_name(path);
    return build.add(Op::add, {to, kept});
  };
  const Value normed = layers.layer_norm(path + ".norm1", x, config.eps);
  const Value attended = layers.self_attention(path + ".attn", normed, config.heads);
  const Value middle = add(".drop_path1", x, attended);
  const Value again = layers.layer_norm(path + ".norm2", middle, config.eps);
  return add(".drop_path2", middle, layers.mlp(path + ".mlp", again, config.hidden));
}

// [B, N + 1, D] to [B, classes].
Value head(const VitConfig& config,
           Builder& build,
           Layers& layers,
           Value x,
           std::optional<Value> random) {
  const bool mean = config.pool == VitConfig::Pool::mean;
  build.set_name("pool");
  const std::int64_t batch = build.type(x).shape[0];
  const Value part = build.add(Op::slice, {x},
                               {{"axis", std::int64_t{1}},
                                {"begin", std::int64_t{mean ? 1 : 0}},
                                {"count", mean ? config.tokens() - 1 : std::int64_t{1}}});
  Value pooled = mean ? build.add(Op::mean, {part}, {{"axis", std::int64_t{1}}})
                      : build.reshape(part, Shape{batch, config.width});
  // timm normalises all tokens and then takes one; rows are normalised one by one, so that this
  // one alone is the same.
  pooled = layers.layer_norm(mean ? "fc_norm" : "norm", pooled, config.eps);
  pooled = layers.dropout("head_drop", pooled, config.dropout, random);
  return layers.linear("head", pooled, config.classes);
}

void add_loss(const VitConfig& config, Builder& build, Value logits, double smoothing) {
  const std::int64_t batch = build.type(logits).shape[0];
  build.set_name("loss");
  const bool binary = config.classes == 1;
  const Value labels = build.input("labels", binary ? TensorType{DType::f32, Shape{batch, 1}}
                                                    : TensorType{DType::i64, Shape{batch}});
  const Value valid = build.input("valid", {DType::i64, Shape()});
  const Value loss = binary ? build.add(Op::binary_cross_entropy, {logits, labels, valid})
                            : build.add(Op::cross_entropy, {logits, labels, valid},
                                        {{"smoothing", smoothing}});
  build.graph().set_result("loss", loss);
  build.graph().set_result("losses", Builder::output(loss, 1));
}

// Of a side, far above any picture, and so that sizes in bytes are numbers of 64 bits.
constexpr std::int64_t kMostPixels = 16384;

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || value > kMostPixels) {
      return std::nullopt;
    }
    value = value * 10 + (digit - '0');
  }
  return text.empty() || value == 0 || value > kMostPixels ? std::nullopt
                                                           : std::optional(value);
}

Error unknown(std::string_view name) {
  return bad_input(
      fmt::format("no model {}; there are "
                  "vit_{{tiny,small,base,large}}_patch{{16,32}}_{{224,384}} and, for "
                  "small images, vit_micro_patch4_16 with any patch and image up to 16384",
                  name));
}

}  // namespace

Result<VitConfig> vit_named(std::string_view name) {
  // vit_SIZE_patchP_I
  VitConfig config;
  config.name = name;
  for (const Size& size : kSizes) {
    const std::string start = fmt::format("vit_{}_patch", size.name);
    if (name.substr(0, start.size()) != start) {
      continue;
    }
    const std::string_view rest = name.substr(start.size());
    const std::size_t bar = rest.find('_');
    const auto patch = number(rest.substr(0, bar));
    const auto image = number(bar == rest.npos ? "" : rest.substr(bar + 1));
    const bool micro = size.name == "micro";
    if (!patch || !image || *image % *patch != 0 ||
        (!micro && ((*patch != 16 && *patch != 32) || (*image != 224 && *image != 384)))) {
      return unknown(name);
    }
    config.patch = *patch;
    config.image = *image;
    config.width = size.width;
    config.depth = size.depth;
    config.heads = size.heads;
    config.hidden = 4 * size.width;
    return config;
  }
  return unknown(name);
}

Graph vit(const VitConfig& config,
          std::int64_t batch,
          ModelMode mode,
          double smoothing,
          const std::optional<Normalisation>& pixels) {
  Graph graph;
  Builder build(graph);
  Layers layers(build);
  Value images =
      build.input("images", {pixels ? DType::u8 : DType::f32,
                             Shape{batch, config.channels, config.image, config.image}});
  std::optional<Value> random;
  if (mode == ModelMode::train && (config.drop_path > 0 || config.dropout > 0)) {
    random = build.input("random", {DType::i64, Shape{3}});
  }
  if (pixels) {
    images = normalise(build, images, *pixels);
  }
  Value x = embed(config, build, layers, images);
  for (std::int64_t at = 0; at < config.depth; ++at) {
    // As timm's linspace(0, rate, depth).
    const double rate = config.depth > 1 ? config.drop_path * static_cast<double>(at) /
                                               static_cast<double>(config.depth - 1)
                                         : 0;
    x = block(config, build, layers, x, fmt::format("blocks.{}", at), {rate, random});
  }
  const Value logits = head(config, build, layers, x, random);
  graph.set_result("logits", logits);
  if (mode != ModelMode::infer) {
    add_loss(config, build, logits, smoothing);
  }
  return graph;
}

std::vector<StateSpec> vit_parameters(const VitConfig& config) {
  return vit(config, 1, ModelMode::infer).states();
}

}  // namespace halfwatt
