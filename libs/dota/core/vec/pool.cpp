#include "vec/pool.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace dota {

// The threads besides the calling one, and what they share with it.
struct Pool::Workers {
  explicit Workers(int count) {
    try {
      for (int i = 1; i <= count; ++i)
        threads.emplace_back([this, i] { loop(i); });
    } catch (...) {
      end();
      throw;
    }
  }

  ~Workers() { end(); }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    start.notify_all();
    for (std::thread& t : threads)
      t.join();
  }

  void take(int thread, const Work& todo, int count) {
    const auto claim = [&] { return next.fetch_add(1, std::memory_order_relaxed); };
    const int all = static_cast<int>(threads.size()) + 1;
    for (int i = claim(); i < count;) {
      // Near the end nobody holds a piece back that another thread could begin.
      const int ahead = count - i > 2 * all ? claim() : -1;
      todo(thread, i, ahead < count ? ahead : -1);
      i = ahead >= 0 ? ahead : claim();
    }
  }

  void run_all(int count, const Work& todo) {
    {
      const std::lock_guard lock(mutex);
      work = &todo;
      n = count;
      next.store(0, std::memory_order_relaxed);
      active = static_cast<int>(threads.size());
      ++run;
    }
    start.notify_all();
    take(0, todo, count);
    std::unique_lock lock(mutex);
    done.wait(lock, [this] { return active == 0; });
    work = nullptr;
  }

  void loop(int thread) {
    std::uint64_t seen = 0;
    for (;;) {
      const Work* todo = nullptr;
      int count = 0;
      {
        std::unique_lock lock(mutex);
        start.wait(lock, [&] { return stop || run != seen; });
        if (stop) return;
        seen = run;
        todo = work;
        count = n;
      }
      take(thread, *todo, count);
      {
        const std::lock_guard lock(mutex);
        if (--active > 0) continue;
      }
      done.notify_one();
    }
  }

  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable start, done;
  const Work* work = nullptr;
  int n = 0, active = 0;
  std::uint64_t run = 0;
  bool stop = false;
  std::atomic<int> next{0};
};

Pool::Pool(int threads) : threads_(threads > 1 ? threads : 1) {}

Pool::~Pool() { abandon_after_fork(); }

// The threads of the parent do not exist in a forked child: they cannot be joined, and a condition that they wait
// for cannot be destroyed.
void Pool::abandon_after_fork() {
  if (workers_ && process_ != getpid()) static_cast<void>(workers_.release());
}

Pool::Workers& Pool::workers() {
  abandon_after_fork();
  if (!workers_) {
    workers_ = std::make_unique<Workers>(threads_ - 1);
    process_ = getpid();
  }
  return *workers_;
}

void Pool::run(int n, const Work& work) {
  if (threads_ == 1 || n <= 1) {
    for (int i = 0; i < n; ++i)
      work(0, i, i + 1 < n ? i + 1 : -1);
    return;
  }
  workers().run_all(n, work);
}

}  // namespace dota
