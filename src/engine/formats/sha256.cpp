#include "engine/formats/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "engine/formats/file.h"

namespace halfwatt {
namespace {

// The first bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4,
    0xAB1C5ED5, 0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE,
    0x9BDC06A7, 0xC19BF174, 0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F,
    0x4A7484AA, 0x5CB0A9DC, 0x76F988DA, 0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7,
    0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967, 0x27B70A85, 0x2E1B2138, 0x4D2C6DFC,
    0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85, 0xA2BFE8A1, 0xA81A664B,
    0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070, 0x19A4C116,
    0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7,
    0xC67178F2};

using std::rotr;

}  // namespace

void Sha256::take_block(const std::byte* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t at = 0; at < 16; ++at) {
    w[at] = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) {
      w[at] = w[at] << 8 | std::to_integer<std::uint32_t>(block[4 * at + byte]);
    }
  }
  for (std::size_t at = 16; at < 64; ++at) {
    const std::uint32_t far = w[at - 15];
    const std::uint32_t near = w[at - 2];
    w[at] = w[at - 16] + (rotr(far, 7) ^ rotr(far, 18) ^ far >> 3) + w[at - 7] +
            (rotr(near, 17) ^ rotr(near, 19) ^ near >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t at = 0; at < 64; ++at) {
    const std::uint32_t chosen = (e & f) ^ (~e & g);
    const std::uint32_t most = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t one =
        h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + chosen + kRound[at] + w[at];
    const std::uint32_t two = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + most;
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> after = {a, b, c, d, e, f, g, h};
  for (std::size_t at = 0; at < after.size(); ++at) {
    state_[at] += after[at];
  }
}

void Sha256::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto open = static_cast<std::size_t>(bytes_ % kBlock);
    if (open == 0 && bytes.size() >= kBlock) {
      take_block(bytes.data());
      bytes_ += kBlock;
      bytes = bytes.subspan(kBlock);
      continue;
    }
    const std::size_t taken = std::min(kBlock - open, bytes.size());
    std::copy_n(bytes.data(), taken, open_.data() + open);
    bytes_ += taken;
    bytes = bytes.subspan(taken);
    if (open + taken == kBlock) {
      take_block(open_.data());
    }
  }
}

std::string Sha256::digest() {
  const std::uint64_t bits = bytes_ * 8;
  constexpr std::size_t kLength = 8;  // bytes, at the end of the last block
  std::vector<std::byte> end = {std::byte{0x80}};
  while ((bytes_ + end.size() + kLength) % kBlock != 0) {
    end.push_back(std::byte{0});
  }
  for (std::size_t at = kLength; at-- > 0;) {
    end.push_back(static_cast<std::byte>(bits >> (8 * at)));
  }
  add(end);
  std::string text;
  for (const std::uint32_t word : state_) {
    text += fmt::format("{:08x}", word);
  }
  return text;
}

Result<std::string> sha256_of(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) {
    return file.error();
  }
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::vector<std::byte> piece(kPiece);
  Sha256 sum;
  for (std::uint64_t at = 0; at < file->bytes(); at += kPiece) {
    const auto now = std::span(piece).first(std::min(kPiece, file->bytes() - at));
    if (const auto read = file->read(at, now); !read) {
      return read.error();
    }
    sum.add(now);
  }
  return sum.digest();
}

}  // namespace halfwatt
