#include "engine/models/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/exec/session.h"
#include "engine/formats/folder.h"
#include "engine/formats/safetensors.h"
#include "engine/models/vit.h"
#include "engine/ops/builder.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

VitConfig micro(std::int64_t classes = 10, VitConfig::Pool pool = VitConfig::Pool::token) {
  VitConfig config = *vit_named("vit_micro_patch4_16");
  config.classes = classes;
  config.pool = pool;
  return config;
}

/// The parameters of a model in some dtype, on a backend.
struct Model {
  explicit Model(const VitConfig& config, DType dtype = DType::f32) : backend(*open_cpu()) {
    for (StateSpec spec : vit_parameters(config)) {
      spec.type.dtype = dtype;
      states.ensure(spec, *backend);
    }
  }
  std::unique_ptr<Backend> backend;
  States states;
};

/// What a test may change of a file of weights before it is written.
class Weights {
 public:
  explicit Weights(const VitConfig& config) {
    for (const StateSpec& spec : vit_parameters(config)) {
      set(spec.name, DType::f32, spec.type.shape, 0.5);
    }
  }
  void set(const std::string& name, DType dtype, const Shape& shape, double value) {
    const std::vector<double> values(static_cast<std::size_t>(shape.elements()), value);
    Tensor tensor(TensorType{dtype, shape});
    if (is_float(dtype)) {
      convert(Tensor::of<double>(DType::f64, shape, values).view(), tensor.view());
    } else {
      std::fill(tensor.view().bytes().begin(), tensor.view().bytes().end(), std::byte{1});
    }
    tensors_[name] = std::move(tensor);
  }
  Tensor& operator[](const std::string& name) { return tensors_.at(name); }
  void drop(const std::string& name) { tensors_.erase(name); }
  std::filesystem::path write(const std::map<std::string, std::string>& metadata = {}) const {
    std::vector<NamedTensor> named;
    for (const auto& [name, tensor] : tensors_) {
      named.push_back({name, tensor.view()});
    }
    const auto written = write_safetensors(folder_.path("w.safetensors"), named, metadata);
    EXPECT_TRUE(written);
    return folder_.path("w.safetensors");
  }

 private:
  Folder folder_;
  std::map<std::string, Tensor> tensors_;
};

std::string refusal(const Weights& weights, const VitConfig& config) {
  Model model(config);
  const auto report = load_weights(weights.write(), model.states);
  EXPECT_FALSE(report);
  const std::string message = report ? "" : report.error().message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  for (const std::string& name : model.states.names()) {
    const Tensor state = model.states.save(name);
    for (const float value : state.as<float>()) {
      EXPECT_EQ(value, 0) << "nothing is loaded of a file that is refused";
    }
  }
  return message;
}

testing::AssertionResult says(const std::string& message, const std::string& part) {
  return message.find(part) != message.npos ? testing::AssertionSuccess()
                                            : testing::AssertionFailure() << message;
}

std::vector<std::byte> bytes(const Tensor& tensor) {
  const auto all = tensor.view().bytes();
  return {all.begin(), all.end()};
}

TEST(Weights, come_back_from_a_file_as_they_went_into_it) {
  const Folder folder;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    Model model(micro(), dtype);
    draw_weights(model.states, 7);
    ASSERT_TRUE(save_weights(folder.path("w"), model.states));
    Model other(micro(), dtype);
    const auto report = load_weights(folder.path("w"), other.states);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->tensors, 32);
    EXPECT_EQ(report->converted, 0);
    EXPECT_EQ(report->overflowed, 0);
    for (const StateSpec& spec : vit_parameters(micro())) {
      EXPECT_EQ(bytes(other.states.save(spec.name)), bytes(model.states.save(spec.name)));
    }
  }
}

TEST(Weights, are_written_under_the_names_and_in_the_shapes_of_timm) {
  const Folder folder;
  Model model(micro());
  ASSERT_TRUE(save_weights(folder.path("w"), model.states));
  const auto file = SafetensorsFile::open(folder.path("w"));
  ASSERT_TRUE(file);
  const auto parameters = vit_parameters(micro());
  EXPECT_EQ(file->header().tensors.size(), parameters.size());
  for (const StateSpec& spec : parameters) {
    ASSERT_NE(file->find(spec.name), nullptr) << spec.name;
    EXPECT_EQ(file->find(spec.name)->type, spec.type) << spec.name;
  }
}

TEST(Weights, that_two_layers_share_are_in_the_file_once) {
  Graph graph;
  Builder build(graph);
  const Value x = build.input("x", {DType::f32, Shape{2, 4}});
  const StateSpec shared{
      "shared.weight", StateRole::parameter, {DType::f32, Shape{4, 4}}, {}, 0};
  const Value once = build.linear(x, build.read(shared), {});
  graph.set_result("y", build.linear(once, build.read(shared), {}));
  const auto backend = *open_cpu();
  States states;
  std::vector<Plan> plans;
  plans.push_back(*lower(graph, {&backend->target(), 1}));
  const auto session = Session::open(std::move(plans), {backend.get()}, states);
  ASSERT_TRUE(session);
  const Folder folder;
  ASSERT_TRUE(save_weights(folder.path("w"), states));
  const auto file = SafetensorsFile::open(folder.path("w"));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->header().tensors.size(), 1U);
  EXPECT_EQ(file->header().tensors[0].name, "shared.weight");
}

TEST(Weights, beside_other_states_are_the_only_ones_in_the_file) {
  Model model(micro());
  model.states.ensure(
      {"head.bias@m", StateRole::moment, {DType::f32, Shape{10}}, "head.bias", 0},
      *model.backend);
  const Folder folder;
  ASSERT_TRUE(save_weights(folder.path("w"), model.states));
  EXPECT_EQ(SafetensorsFile::open(folder.path("w"))->header().tensors.size(), 32U);
  EXPECT_TRUE(load_weights(folder.path("w"), model.states));
}

TEST(Weights, of_another_model_are_listed_by_what_is_wrong_with_them) {
  Weights weights(micro());
  for (const std::string layer : {"norm1", "attn.qkv", "attn.proj"}) {
    weights.drop("blocks.1." + layer + ".weight");
    weights.drop("blocks.1." + layer + ".bias");
  }
  weights.set("blocks.2.norm1.weight", DType::f32, Shape{32}, 0);
  weights.set("pos_embed", DType::f32, Shape{1, 50, 32}, 0);
  weights.set("norm.bias", DType::i8, Shape{32}, 0);
  const std::string message = refusal(weights, micro());
  EXPECT_TRUE(
      says(message,
           "w.safetensors: not the weights of this model; 6 missing "
           "(blocks.1.attn.proj.bias, blocks.1.attn.proj.weight, "
           "blocks.1.attn.qkv.bias, ...); 1 extra (\"blocks.2.norm1.weight\"); 1 of "
           "another shape (pos_embed 1x50x32, needs 1x17x32); 1 no floats (norm.bias i8)"));
}

TEST(Weights, of_another_head_are_refused_with_the_flag_that_fits) {
  EXPECT_TRUE(
      says(refusal(Weights(micro(7)), micro(10)), "its head has 7 classes: --classes 7"));
  EXPECT_TRUE(says(refusal(Weights(micro(1)), micro(10)), "its head has 1 class: --classes 1"));
  const auto mean = VitConfig::Pool::mean;
  EXPECT_TRUE(
      says(refusal(Weights(micro(10, mean)), micro()), "its head sees the mean: --pool mean"));
  EXPECT_TRUE(says(refusal(Weights(micro()), micro(10, mean)),
                   "its head sees the token: --pool token"));
}

TEST(Weights, of_another_head_begin_a_new_one_where_a_model_is_to_learn_on) {
  Model model(micro(10));
  const auto refused = load_weights(Weights(micro(7)).write(), model.states, FineTuning{});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(says(refused.error().message,
                   "its head has 7 classes: --reset-head, which begins one of 10 anew"));
}

TEST(Weights, come_with_the_names_of_their_classes) {
  const Folder folder;
  const std::vector<std::string> names = {"cat", "a \"dog\", wet", "\xc3\xa9l\xc3\xa9phant"};
  Model model(micro(3));
  ASSERT_TRUE(save_weights(folder.path("w"), model.states, SavedWeights::parameters, names));
  EXPECT_EQ(load_weights(folder.path("w"), model.states)->classes, names);
  EXPECT_TRUE(load_weights(folder.path("w"), model.states, FineTuning{.reset_head = true})
                  ->classes.empty())
      << "a head that begins anew is of other classes";
  ASSERT_TRUE(save_weights(folder.path("w"), model.states));
  EXPECT_TRUE(load_weights(folder.path("w"), model.states)->classes.empty());
}

TEST(Weights, whose_metadata_have_no_list_of_texts_have_no_names) {
  Model model(micro(3));
  for (const std::string_view text :
       {"", "cat", "{\"a\":1}", "[1,2,3]", "[\"a\",[]]", "[", "3"}) {
    const auto report =
        load_weights(Weights(micro(3)).write({{"classes", std::string(text)}}), model.states);
    ASSERT_TRUE(report) << text;
    EXPECT_TRUE(report->classes.empty()) << text;
  }
}

TEST(Weights, of_a_checkpoint_are_its_averages_without_what_is_the_trainings_alone) {
  const std::map<std::string, std::string> is_checkpoint = {{"halfwatt.checkpoint", "{}"}};
  Weights weights(micro());
  const Shape shape{10, 32};
  weights.set("head.weight.ema", DType::f32, shape, 0.25);
  weights.set("head.weight.exp_avg", DType::f32, shape, 7);
  weights.set("step.applied", DType::i64, Shape(), 0);
  Model model(micro());
  const auto report = load_weights(weights.write(is_checkpoint), model.states);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(model.states.save("head.weight").as<float>()[0], 0.25F);
  EXPECT_EQ(model.states.save("head.bias").as<float>()[0], 0.5F) << "which has no average";
  EXPECT_FALSE(load_weights(weights.write(), model.states)) << "it is no checkpoint";
  weights.set("blocks.7.norm1.weight", DType::f32, Shape{32}, 0);
  const auto deeper = load_weights(weights.write(is_checkpoint), model.states);
  ASSERT_FALSE(deeper);
  EXPECT_TRUE(says(deeper.error().message, "1 extra (\"blocks.7.norm1.weight\")"));
}

TEST(Weights, of_another_head_leave_a_head_that_is_reset_as_it_is_and_say_so) {
  for (const bool has_head : {true, false}) {
    Weights weights(micro(7));
    if (!has_head) {
      weights.drop("head.weight");
      weights.drop("head.bias");
    }
    Model model(micro(10));
    draw_weights(model.states, 3);
    const std::vector<std::byte> head = bytes(model.states.save("head.weight"));
    const auto report =
        load_weights(weights.write(), model.states, FineTuning{.reset_head = true});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->tensors, 30);
    EXPECT_EQ(bytes(model.states.save("head.weight")), head);
    EXPECT_EQ(model.states.save("cls_token").as<float>()[0], 0.5F);
    EXPECT_EQ(
        report->changes,
        (has_head ? std::vector<std::string>{"head.bias begins anew as 10; the file has 7",
                                             "head.weight begins anew as 10x32; the file "
                                             "has 7x32"}
                  : std::vector<std::string>{"head.bias begins anew as 10",
                                             "head.weight begins anew as 10x32"}));
  }
}

TEST(Weights, of_another_image_size_are_resampled_where_that_is_asked_for) {
  Weights weights(*vit_named("vit_micro_patch4_32"));
  weights.set("head.weight", DType::f32, Shape{10, 32}, 0.5);
  weights.set("head.bias", DType::f32, Shape{10}, 0.5);
  EXPECT_TRUE(says(refusal(weights, micro()), "pos_embed 1x65x32, needs 1x17x32"));
  Model model(micro());
  const auto report = load_weights(weights.write(), model.states, FineTuning{.resize = true});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->changes,
            std::vector<std::string>{"pos_embed is resampled from 8x8 patches to 4x4"});
  const Tensor positions = model.states.save("pos_embed");
  for (const float value : positions.as<float>()) {
    EXPECT_NEAR(value, 0.5F, 1e-6F);
  }
}

TEST(Weights, whose_positions_fill_no_square_are_refused_even_so) {
  Weights weights(micro());
  weights.set("pos_embed", DType::f32, Shape{1, 18, 32}, 0.5);
  Model model(micro());
  const auto report = load_weights(weights.write(), model.states, FineTuning{.resize = true});
  ASSERT_FALSE(report);
  EXPECT_TRUE(says(report.error().message, "pos_embed 1x18x32, needs 1x17x32"));
}

TEST(Weights, become_the_dtype_of_the_model_and_what_does_not_fit_is_counted) {
  Weights weights(micro());
  weights.set("head.weight", DType::f64, Shape{10, 32}, 1.0 / 3);
  weights["head.bias"].as<float>()[3] = 1e6F;
  weights["head.bias"].as<float>()[4] = -65520.0F;  // rounds to infinity, 65519 would not
  weights["head.bias"].as<float>()[5] = 65519.0F;
  weights["norm.bias"].as<float>()[0] = NAN;
  Model model(micro(), DType::f16);
  const auto report = load_weights(weights.write(), model.states);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->converted, 32);
  EXPECT_EQ(report->overflowed, 2);
  EXPECT_EQ(report->first_overflowed, "head.bias");
  EXPECT_EQ(report->not_finite, 1);
  EXPECT_EQ(report->first_not_finite, "norm.bias");
  EXPECT_EQ(model.states.save("head.weight").as<std::uint16_t>()[0],
            (encode<DType::f16>(1.0 / 3)));
}

TEST(Weights, that_are_too_large_for_a_copy_alone_are_counted_too) {
  Model model(micro());
  model.states.ensure(
      {"head.bias@f16", StateRole::copy, {DType::f16, Shape{10}}, "head.bias", 0},
      *model.backend);
  Weights weights(micro());
  weights["head.bias"].as<float>()[3] = 1e6F;
  const auto report = load_weights(weights.write(), model.states);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->overflowed, 1);
  EXPECT_EQ(report->converted, 0);
}

TEST(Weights, fill_copies_where_the_parameters_are_not_held) {
  const auto backend = *open_cpu();
  States states;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    states.ensure({"head.bias@" + std::string(text(dtype)),
                   StateRole::copy,
                   {dtype, Shape{2}},
                   "head.bias",
                   0},
                  *backend);
  }
  const Folder folder;
  const Tensor bias = Tensor::of<float>(DType::f32, Shape{2}, std::vector<float>{1.5F, 70000});
  const NamedTensor named{"head.bias", bias.view()};
  ASSERT_TRUE(write_safetensors(folder.path("w"), {&named, 1}));
  const auto report = load_weights(folder.path("w"), states);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tensors, 1);
  EXPECT_EQ(report->overflowed, 1) << "in f16 alone";
  EXPECT_EQ(states.save("head.bias@f16").as<std::uint16_t>()[0], (encode<DType::f16>(1.5)));
  EXPECT_EQ(states.save("head.bias@bf16").as<std::uint16_t>()[1], (encode<DType::bf16>(7e4)));
}

}  // namespace
}  // namespace halfwatt
