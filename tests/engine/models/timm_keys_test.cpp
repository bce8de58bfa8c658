// Names, order, dtypes and shapes of timm's state_dicts, as timm_keys.py wrote them down.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/models/vit.h"

namespace halfwatt {
namespace {

/// "vit_tiny_patch16_224 num_classes=1: 152 tensors, 5526916 parameters" and what follows it.
struct Golden {
  std::string headline;
  std::vector<std::string> lines;
};

std::vector<Golden> read_goldens() {
  std::ifstream in("tests/golden/engine/timm_keys.txt");
  std::vector<Golden> all;
  for (std::string line; std::getline(in, line);) {
    if (line.find(": ") != line.npos) {
      all.push_back({line, {}});
    } else if (!line.empty() && line[0] != '#') {
      all.back().lines.push_back(line);
    }
  }
  return all;
}

VitConfig config_of(const std::string& headline) {
  const std::string words = headline.substr(0, headline.find(':'));
  auto config = vit_named(words.substr(0, words.find(' ')));
  EXPECT_TRUE(config) << headline;
  if (words.find("num_classes=1") != words.npos) {
    config->classes = 1;
  }
  if (words.find("global_pool=avg") != words.npos) {
    config->pool = VitConfig::Pool::mean;
  }
  return *config;
}

// As the golden tells them: those of all blocks once, if they are all the same.
std::vector<std::string> lines_of(const VitConfig& config) {
  std::vector<std::string> lines;
  std::vector<std::vector<std::string>> blocks(static_cast<std::size_t>(config.depth));
  int last = 0;
  for (const StateSpec& state : vit_parameters(config)) {
    const std::string type = text(state.type);
    if (state.name.rfind("blocks.", 0) != 0) {
      lines.push_back(state.name + " " + type);
      continue;
    }
    const std::size_t dot = state.name.find('.', 7);
    const int block = std::stoi(state.name.substr(7, dot - 7));
    EXPECT_GE(block, last) << "blocks in their order";
    last = block;
    const std::string rest = state.name.substr(dot + 1) + " " + type;
    blocks[static_cast<std::size_t>(block)].push_back(rest);
    if (block == 0) {
      lines.push_back(fmt::format("blocks.{{0..{}}}.{}", config.depth - 1, rest));
    }
  }
  for (const auto& block : blocks) {
    EXPECT_EQ(block, blocks.front());
  }
  return lines;
}

TEST(TimmKeys, are_those_of_every_model_in_their_order) {
  const std::vector<Golden> goldens = read_goldens();
  EXPECT_EQ(goldens.size(), 13U);
  for (const Golden& golden : goldens) {
    const VitConfig config = config_of(golden.headline);
    EXPECT_EQ(lines_of(config), golden.lines) << golden.headline;
    std::int64_t elements = 0;
    for (const StateSpec& state : vit_parameters(config)) {
      elements += state.type.shape.elements();
    }
    EXPECT_NE(golden.headline.find(fmt::format(": {} tensors, {} parameters",
                                               vit_parameters(config).size(), elements)),
              std::string::npos)
        << golden.headline;
  }
}

}  // namespace
}  // namespace halfwatt
