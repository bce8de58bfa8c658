#include "device/nvml_library.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "device/fake_machine.h"

namespace halfwatt {
namespace {

Error init_error(std::uint32_t code, const std::string& driver = "") {
  FakeMachine machine(one_fault("nvmlInit*", code));
  if (!driver.empty()) {
    std::filesystem::create_directories(machine.root() / "proc/driver/nvidia");
    std::ofstream(machine.root() / "proc/driver/nvidia/version") << driver;
  }
  const auto library = machine.open_library();
  EXPECT_FALSE(library) << code;
  return library ? Error{} : library.error();
}

bool says(const Error& error, std::string_view text) {
  return error.message.find(text) != std::string::npos;
}

TEST(NvmlLibrary, says_what_is_missing_and_which_variable_names_another) {
  const auto library = NvmlLibrary::open("no-such-libnvidia-ml.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ErrorKind::device);
  EXPECT_TRUE(says(library.error(), "no-such-libnvidia-ml.so.1"));
  EXPECT_TRUE(says(library.error(), "needed the NVIDIA driver"));
  EXPECT_TRUE(says(library.error(), "HALFWATT_NVML=FILE"));
}

TEST(NvmlLibrary, refuses_a_library_that_is_another_one) {
  const FakeMachine machine(FakeNvml::cards(1), NvmlVariant::no_nvml);
  const auto library = machine.open_library();
  ASSERT_FALSE(library);
  EXPECT_TRUE(says(library.error(), "is not NVML"));
}

TEST(NvmlLibrary, is_the_one_that_the_environment_names) {
  FakeMachine machine;
  EXPECT_EQ(NvmlLibrary::usual_path(), FakeNvml::library());
  ::unsetenv("HALFWATT_NVML");
  EXPECT_EQ(NvmlLibrary::usual_path(), "libnvidia-ml.so.1");
}

TEST(NvmlLibrary, tells_each_reason_why_it_cannot_start_in_one_line_with_the_way_out) {
  struct Row {
    std::uint32_t code;
    std::string_view found;
    std::string_view needed;
  };
  for (const Row& row :
       {Row{4, "no permission", "/dev/nvidiactl"},
        Row{9, "driver is not loaded", "modprobe nvidia"},
        Row{12, "library of the NVIDIA driver is missing", "utility"},
        Row{17, "cgroup blocks", "--gpus all"}, Row{18, "differ", "differ"},
        Row{999, "unknown error", "start the container again"},
        Row{15, "the GPU is lost", "code 15"}, Row{4711, "code 4711", "NVML"}}) {
    if (row.code == 18) {
      continue;  // below
    }
    const Error error = init_error(row.code);
    EXPECT_EQ(error.kind, ErrorKind::device);
    EXPECT_TRUE(says(error, row.found)) << error.message;
    EXPECT_TRUE(says(error, row.needed)) << error.message;
    EXPECT_TRUE(says(error, "code " + std::to_string(row.code))) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
  }
}

constexpr const char* kVersionFile =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";

TEST(NvmlLibrary, names_both_versions_where_driver_and_library_differ) {
  FakeMachine machine(one_fault("nvmlInit*", 18));
  std::filesystem::create_directories(machine.root() / "proc/driver/nvidia");
  std::ofstream(machine.root() / "proc/driver/nvidia/version") << kVersionFile;
  // As a driver's package installs it: a link to a file with the version in its name.
  const auto file = machine.nvml.folder() / "libnvidia-ml.so.535.183.01";
  const auto link = machine.nvml.folder() / "libnvidia-ml.so.1";
  std::filesystem::copy_file(FakeNvml::library(), file);
  std::filesystem::create_symlink(file, link);
  const auto library = NvmlLibrary::open(link.string(), machine.root());
  ASSERT_FALSE(library);
  EXPECT_TRUE(says(library.error(), "the loaded driver is 535.129.03"))
      << library.error().message;
  EXPECT_TRUE(says(library.error(), "the library 535.183.01")) << library.error().message;
  EXPECT_TRUE(says(library.error(), "needed a reboot"));
}

TEST(NvmlLibrary, says_so_where_it_does_not_know_the_versions_that_differ) {
  const Error error = init_error(18);
  EXPECT_TRUE(says(error, "the loaded driver is of unknown version")) << error.message;
}

TEST(NvmlLibrary, starts_and_lists_the_cards_with_every_set_of_symbols) {
  for (const NvmlVariant variant :
       {NvmlVariant::modern, NvmlVariant::old, NvmlVariant::ancient}) {
    const FakeMachine machine(FakeNvml::cards(3), variant);
    const auto library = machine.open_library();
    ASSERT_TRUE(library) << library.error().message;
    const auto cards = (*library)->cards();
    ASSERT_TRUE(cards);
    ASSERT_EQ(cards->size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*cards)[i].index, i);
      EXPECT_EQ((*cards)[i].uuid, machine.uuid(i));
      EXPECT_EQ((*cards)[i].name, "NVIDIA Fake 3090");
      // The fake's oldest set has no function for it.
      const bool has_pci = variant != NvmlVariant::ancient;
      EXPECT_EQ((*cards)[i].pci, has_pci ? fmt::format("0000:{:02}:00.0", i + 1) : "");
      EXPECT_EQ((*cards)[i].trouble.has_value(), false);
      EXPECT_TRUE((*library)->handle(machine.uuid(i)));
    }
    EXPECT_EQ((*library)->driver_version(), "580.65.06");
  }
}

TEST(NvmlLibrary, lists_a_card_that_it_may_not_use_with_the_reason) {
  for (const std::uint32_t code : {4U, 8U, 11U, 15U, 999U}) {
    fake_nvml::Script script = FakeNvml::cards(3);
    fake_nvml::Fault fault;
    fault.symbol = "nvmlDeviceGetHandleByIndex*";
    fault.code = code;
    fault.card = 1;
    script.faults.push_back(fault);
    const FakeMachine machine(script);
    const auto library = machine.open_library();
    ASSERT_TRUE(library);
    const auto cards = (*library)->cards();
    ASSERT_TRUE(cards) << cards.error().message;
    ASSERT_EQ(cards->size(), 3U);
    EXPECT_FALSE((*cards)[0].trouble);
    ASSERT_TRUE((*cards)[1].trouble) << code;
    EXPECT_TRUE(says(*(*cards)[1].trouble, "gpu:1: ")) << (*cards)[1].trouble->message;
    EXPECT_TRUE(says(*(*cards)[1].trouble, "code " + std::to_string(code)));
    EXPECT_FALSE((*cards)[2].trouble);
  }
}

TEST(NvmlLibrary, says_why_cards_cannot_be_listed) {
  const FakeMachine machine(one_fault("nvmlDeviceGetCount*", 999));
  const auto library = machine.open_library();
  ASSERT_TRUE(library);
  const auto cards = (*library)->cards();
  ASSERT_FALSE(cards);
  EXPECT_TRUE(says(cards.error(), "cannot be listed: unknown error of the driver"));
}

TEST(NvmlLibrary, finds_no_handle_for_a_uuid_that_is_not_there) {
  const FakeMachine machine;
  const auto library = machine.open_library();
  ASSERT_TRUE(library);
  const auto handle = (*library)->handle("GPU-none");
  ASSERT_FALSE(handle);
  EXPECT_TRUE(says(handle.error(), "GPU-none: not found")) << handle.error().message;
}

TEST(NvmlLibrary, gives_symbols_by_name_and_null_for_those_it_lacks) {
  const FakeMachine machine;
  const auto library = machine.open_library();
  ASSERT_TRUE(library);
  EXPECT_NE((*library)->symbol("nvmlDeviceGetPowerUsage"), nullptr);
  EXPECT_EQ((*library)->symbol("nvmlDeviceGetNoSuchThing"), nullptr);
}

TEST(NvmlLibrary, is_shut_down_with_its_last_owner_and_not_before) {
  const FakeMachine machine;
  auto library = machine.open_library();
  ASSERT_TRUE(library);
  auto card = NvmlCard::open(*library, machine.uuid(), machine.root());
  ASSERT_TRUE(card);
  library = Error{};
  EXPECT_EQ(machine.nvml.calls("nvmlShutdown", std::nullopt), 0U);
  EXPECT_TRUE((*card)->read());
  card->reset();
  EXPECT_EQ(machine.nvml.calls("nvmlShutdown", std::nullopt), 1U);
}

}  // namespace
}  // namespace halfwatt
