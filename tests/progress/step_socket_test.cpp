#include "progress/step_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <list>
#include <thread>

#include "base/clock.h"
#include "base/rng.h"
#include "cli/program.h"
#include "progress/job.h"

namespace halfwatt {
namespace {

class StepSocketTest : public ::testing::Test {
 protected:
  SourceReading read() { return socket_->read(SteadyClock().now()); }
  SourceReading tell(const StepMessage& message) {
    EXPECT_TRUE(tell_step(socket_->path(), message));
    return read();
  }
  /// Any bytes, as a program that is not ours may send them.
  void send(std::string_view bytes) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, socket_->path().c_str());
    const int sender = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    ::sendto(sender, bytes.data(), bytes.size(), MSG_DONTWAIT,
             reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::close(sender);
  }
  /// What a shell script's `halfwatt step WORDS` does.
  Outcome step(const std::string& words, const std::string& before = "") {
    return run_program("step " + words,
                       before + " HALFWATT_SOCKET='" + socket_->path().string() + "'");
  }

  Folder folder_;
  std::unique_ptr<StepSocket> socket_ = *StepSocket::listen(folder_.path(""));
};

TEST_F(StepSocketTest, says_nothing_until_somebody_speaks) { EXPECT_FALSE(read().has_spoken); }

TEST_F(StepSocketTest, counts_numbers_from_the_first_on) {
  EXPECT_EQ(tell({500, 1000, {}, 0, {}}).steps, 0);
  const SourceReading reading = tell({510, 1320, 0.5, 0, {}});
  EXPECT_EQ(reading.steps, 10);
  EXPECT_EQ(reading.items, 320);
  EXPECT_EQ(reading.losses.last, 0.5);
}

TEST_F(StepSocketTest, counts_steps_without_a_number) {
  tell({{}, 32, {}, 0, {}});
  const SourceReading reading = tell({{}, 32, {}, 0, {}});
  EXPECT_EQ(reading.steps, 2);
  EXPECT_EQ(reading.items, 64);
}

TEST_F(StepSocketTest, takes_the_time_at_which_a_step_was_told_unless_it_cannot_be) {
  const Seconds now = SteadyClock().now();
  EXPECT_EQ(tell({{}, {}, {}, 0, now - Seconds(1)}).at, now - Seconds(1));
  EXPECT_GE(tell({{}, {}, {}, 0, now + Seconds(100)}).at, now);
  EXPECT_GE(tell({{}, {}, {}, 0, now - Seconds(1000)}).at, now);
}

TEST_F(StepSocketTest, gives_the_slowest_rank) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    tell({100, {}, {}, rank, {}});
  }
  tell({110, {}, {}, 0, {}});
  tell({105, {}, {}, 1, {}});
  EXPECT_EQ(read().steps, 0);
  EXPECT_EQ(tell({103, {}, {}, 2, {}}).steps, 3);
}

TEST_F(StepSocketTest, goes_on_after_a_restart_with_fewer_ranks) {
  tell({{}, 2, {}, 0, {}});
  tell({{}, 2, {}, 1, {}});
  EXPECT_EQ(read().steps, 1);
  socket_->restart();
  EXPECT_EQ(read().steps, 1);
  const SourceReading reading = tell({{}, 2, {}, 0, {}});
  EXPECT_EQ(reading.steps, 2);
  EXPECT_EQ(reading.items, 6);
}

TEST_F(StepSocketTest, ignores_garbage_with_one_remark) {
  send("45");
  send("\x01 what");
  send(std::string(5000, 'x'));
  send("");
  send("46");
  EXPECT_EQ(read().steps, 1);
  const std::string remark = socket_->take_remark();
  EXPECT_NE(remark.find("\"? what\""), std::string::npos) << remark;
  send("more");
  read();
  EXPECT_EQ(socket_->take_remark(), "");
}

TEST_F(StepSocketTest, survives_any_bytes) {
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(rng.next() % 300, ' ');
    for (char& c : bytes) {
      c = static_cast<char>(rng.next());
    }
    send(bytes);
    read();
  }
  const double before = read().steps;  // a single digit is a message
  EXPECT_EQ(tell({{}, {}, {}, 0, {}}).steps, before + 1);
}

TEST_F(StepSocketTest, hears_what_a_shell_script_tells) {
  EXPECT_EQ(step("").status, 0);
  EXPECT_EQ(step("100 --items 3200 --loss 0.75").status, 0);
  EXPECT_EQ(step("101 --items 3232 --loss nan").status, 0);
  const SourceReading reading = read();
  EXPECT_EQ(reading.steps, 2);
  EXPECT_EQ(reading.items, 32);
  EXPECT_EQ(reading.losses.told, 2u);
  EXPECT_EQ(reading.losses.dead, 1u);
}

TEST_F(StepSocketTest, hears_every_one_of_several_scripts) {
  std::list<Job> scripts;
  const char* program = std::getenv("HALFWATT_PROGRAM");
  ASSERT_NE(program, nullptr);
  for (int i = 0; i < 4; ++i) {
    scripts.emplace_back(std::vector<std::string>{"sh", "-c",
                                                  "for i in 1 2 3 4 5 6 7 8 9 10; do '" +
                                                      std::string(program) + "' step; done"},
                         Environment{{"HALFWATT_SOCKET", socket_->path().string()}});
  }
  SteadyClock clock;
  const Seconds give_up = clock.now() + Seconds(30);
  while (read().steps < 40 && clock.now() < give_up) {
    clock.sleep_until(clock.now() + Seconds(0.005));
  }
  for (Job& script : scripts) {
    EXPECT_EQ(script.wait(), 0);
  }
  EXPECT_EQ(read().steps, 40);
}

TEST_F(StepSocketTest, keeps_the_ranks_of_scripts_apart) {
  EXPECT_EQ(step("5", "LOCAL_RANK=0").status, 0);
  EXPECT_EQ(step("5", "LOCAL_RANK=1").status, 0);
  EXPECT_EQ(step("9", "LOCAL_RANK=1").status, 0);
  EXPECT_EQ(read().steps, 0);
}

TEST_F(StepSocketTest, lets_a_script_go_on_when_nobody_listens) {
  EXPECT_EQ(run_program("step 5", "unset HALFWATT_SOCKET;").status, 0);
  socket_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_.path("progress.socket")));
  const Outcome outcome =
      run_program("step 5", "HALFWATT_SOCKET='" + folder_.path("progress.socket") + "'");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

TEST(StepCommand, says_what_is_no_number) {
  for (const char* words :
       {"step x", "step -1", "step 1 2", "step --items x", "step --loss x"}) {
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_NE(outcome.err.find("needed"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_program("step 1 --loss -0.5").status, 0);
}

TEST(StepSocket, is_not_made_where_its_path_is_too_long) {
  const Folder folder;
  const std::string deep = folder.path(std::string(120, 'x'));
  std::filesystem::create_directory(deep);
  const auto socket = StepSocket::listen(deep);
  ASSERT_FALSE(socket.has_value());
  EXPECT_NE(socket.error().message.find("at most 107"), std::string::npos)
      << socket.error().message;
}

}  // namespace
}  // namespace halfwatt
