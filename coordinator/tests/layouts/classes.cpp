// Classes with bases. What pahole 1.24 has no size for is in the second part: empty bases and pointers to members.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lab {

class Plain { public: int a; char b; };
class Heir : public Plain { public: char c; long d; };
class Virtual { public: virtual ~Virtual() {} int a; char b; };
class VirtualHeir : public Virtual { public: char c; double d; };
class Two : public Plain, public Virtual { public: short e; };
class Private : Heir { public: void *f; };
template <class T, int N> class Slots : public Plain { public: T items[N]; alignas(64) std::atomic<T> head; };
class Library : public Plain { public: std::string name; std::vector<int> values; std::shared_ptr<int> shared; };
class Grandchild : public VirtualHeir {
  public:
    int &reference;
    const char *text;
    static int counted;
    Grandchild(int &r) : reference(r) {}
};
class Bits : public Plain { public: bool flag : 1; unsigned count : 9; union { int i; float f; }; };
class Protected : protected Two { public: char last; };

class Empty {};
class Tail : public Virtual, Empty { public: char c; int Virtual::*data; void (Virtual::*function)(); };
class Left : public virtual Virtual { public: int x; };
class Right : public virtual Virtual { public: int y; };
class Diamond : public Left, public Right { public: int z; };
struct Outer { struct Inner; Inner *inner; };
struct Outer::Inner { char a; double b; };

} // namespace lab

int lab::Grandchild::counted;
lab::Heir heir;
lab::VirtualHeir virtual_heir;
lab::Two two;
lab::Private of_private;
lab::Slots<long, 5> slots_long;
lab::Slots<char, 3> slots_char;
lab::Library library;
lab::Grandchild grandchild(lab::Grandchild::counted);
lab::Bits bits;
lab::Protected of_protected;
lab::Tail tail;
lab::Diamond diamond;
lab::Outer::Inner inner;

int main() { return heir.a; }
