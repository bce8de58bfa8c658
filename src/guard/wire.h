#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/descriptor.h"
#include "guard/limit_control.h"

namespace halfwatt {

/// What halfwatt and its guardian say to each other: one packet of words, the first of which is
/// `hold`, `set`, `continue_group`, `end_copy`, `leave`, `release`, or of an answer `ok` or
/// `error`.
using Message = std::vector<std::string>;

/// Sends one packet, and with it the open `file` unless that is -1. Errors: nobody is at the
/// other end.
Result<void> send_message(int socket, const Message& message, int file = -1);
/// Waits for one packet; nullopt when the other end is gone. A file that came with it goes to
/// `file`, which stays as it is without one.
std::optional<Message> receive_message(int socket, Descriptor* file = nullptr);

/// An answer that passes `error` on, and what error_in() reads from it.
Message answer(const Error& error);
/// The error that an answer carries; nullopt for `ok`.
std::optional<Error> error_in(const Message& answer);

/// Whole milliwatts as a word; "-" for nullopt.
std::string word(const std::optional<Watts>& limit);
std::optional<Watts> watts_in(const std::string& word);

/// A limit's state as one word, and back; nullopt if it is not one.
std::string word(const LimitState& state);
std::optional<LimitState> state_in(const std::string& word);

}  // namespace halfwatt
