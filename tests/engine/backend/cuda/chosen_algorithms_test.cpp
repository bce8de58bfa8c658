// What a product's fastest algorithm was is kept in a file. Needs no GPU.

#include "engine/backend/cuda/chosen_algorithms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/formats/folder.h"

namespace halfwatt::cuda {
namespace {

class Chosen : public testing::Test {
 protected:
  static cublasLtMatmulAlgo_t algorithm(unsigned char byte) {
    cublasLtMatmulAlgo_t made;
    std::memset(&made, byte, sizeof made);
    return made;
  }
  static bool same(const cublasLtMatmulAlgo_t& a, const cublasLtMatmulAlgo_t& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }

  const Folder folder_;  // of each test its own: they run side by side
  const std::filesystem::path file_ = folder_.path("cache") / "products.txt";
};

TEST_F(Chosen, are_there_in_the_next_run) {
  ChosenAlgorithms("cuBLASLt 13.0.2, a card", file_).put("NN 1x2x3", algorithm(0xa5));
  const auto found = ChosenAlgorithms("cuBLASLt 13.0.2, a card", file_).find("NN 1x2x3");
  ASSERT_TRUE(found);
  EXPECT_TRUE(same(*found, algorithm(0xa5)));
}

TEST_F(Chosen, are_of_one_card_and_one_library) {
  ChosenAlgorithms("cuBLASLt 13.0.2, a card", file_).put("NN 1x2x3", algorithm(1));
  EXPECT_FALSE(ChosenAlgorithms("cuBLASLt 13.0.3, a card", file_).find("NN 1x2x3"));
  EXPECT_FALSE(ChosenAlgorithms("cuBLASLt 13.0.2, another", file_).find("NN 1x2x3"));
}

TEST_F(Chosen, last_only_as_long_as_the_run_without_a_file) {
  ChosenAlgorithms chosen("m", std::nullopt);
  chosen.put("NN 1x2x3", algorithm(2));
  EXPECT_TRUE(chosen.find("NN 1x2x3"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(Chosen, are_passed_over_where_a_line_is_damaged) {
  std::filesystem::create_directories(file_.parent_path());
  std::ofstream(file_) << "m: NN 1x2x3 12\n"
                       << "m: NN 4x5x6 " << std::string(128, 'g') << "\n"
                       << "nonsense\n\n"
                       << "m: NN 7x8x9 " << std::string(128, '0') << "\n";
  const ChosenAlgorithms chosen("m", file_);
  EXPECT_FALSE(chosen.find("NN 1x2x3"));
  EXPECT_FALSE(chosen.find("NN 4x5x6"));
  ASSERT_TRUE(chosen.find("NN 7x8x9"));
  EXPECT_TRUE(same(*chosen.find("NN 7x8x9"), algorithm(0)));
}

TEST_F(Chosen, are_not_lost_behind_a_line_that_was_torn) {
  std::filesystem::create_directories(file_.parent_path());
  std::ofstream(file_) << "m: NN 1x2x3 12ab";
  ChosenAlgorithms("m", file_).put("NN 4x5x6", algorithm(4));
  EXPECT_TRUE(ChosenAlgorithms("m", file_).find("NN 4x5x6"));
}

TEST_F(Chosen, do_not_need_a_file_that_can_be_written) {
  std::filesystem::create_directories(file_);  // a folder is in its place
  ChosenAlgorithms chosen("m", file_);
  chosen.put("NN 1x2x3", algorithm(3));
  EXPECT_TRUE(chosen.find("NN 1x2x3"));
}

}  // namespace
}  // namespace halfwatt::cuda
