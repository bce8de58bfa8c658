#pragma once

namespace halfwatt {

/// The way out of a C library whose error callback must not return. setjmp and longjmp are in
/// escape.cpp and nowhere else.
class Escape {
 public:
  /// Calls `body`; whether it came to its end and was not left by leave(). Where leave() may be
  /// called, `body` and all between hold nothing that needs a destructor: none is run.
  template <class Body>
  bool run(Body body) {
    return run([](void* context) { (*static_cast<Body*>(context))(); }, &body);
  }

  /// Ends the body that runs now.
  [[noreturn]] void leave();

 private:
  bool run(void (*body)(void*), void* context);

  void* way_out_ = nullptr;
};

}  // namespace halfwatt
